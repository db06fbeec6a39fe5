package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// killTimeout is how long a killed container may take to be gone. One that
// takes longer hangs in the kernel, or its supervisor does.
const killTimeout = 10 * time.Second

// StopContainer asks the main process to stop (with its stop signal, TERM if
// it names none), waits timeout seconds, and kills the whole group. A timeout
// of 0 or less kills at once.
//
// The signal goes to the main process alone, which decides about the others,
// as with any CRI runtime. When the main process has ended, what it left
// behind is killed; StopContainer returns after that.
//
// A container that does not run, or does not exist, is no error. When ctx
// ends, its error is returned, and nothing more is done to the container;
// calling again with a shorter timeout is the way to hurry.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeout int64) error {
	c, err := r.get(containerID)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	// More than a year is a mistake that would overflow a Duration.
	return r.stop(ctx, c, time.Duration(min(max(timeout, 0), 366*24*3600))*time.Second)
}

func (r *Runtime) stop(ctx context.Context, c *container, grace time.Duration) error {
	fail := func(code codes.Code, err error) error {
		return status.Errorf(code, "process: stop container %s (%s): %v", c.rec.Name, c.rec.ID, err)
	}
	runs, err := r.settled(ctx, c)
	if err != nil {
		return fail(ctxCode(ctx), err)
	}
	if !runs {
		return nil
	}
	if grace > 0 && c.main().PID != unknownPID {
		if _, err := signalProcess(c.main(), c.stopSignal()); err != nil {
			return fail(codes.Internal, err)
		}
		switch ended, err := r.endsWithin(ctx, c, grace); {
		case err != nil:
			return fail(ctxCode(ctx), err)
		case ended:
			return nil
		}
	}
	if err := killGroup(c.main()); err != nil {
		return fail(codes.Internal, err)
	}
	if c.main().PID == unknownPID {
		killMarked(c.rec.ID)
	}
	for range 2 {
		switch ended, err := r.endsWithin(ctx, c, killTimeout/2); {
		case err != nil:
			return fail(ctxCode(ctx), err)
		case ended:
			return nil
		}
		// The supervisor should have done this.
		killMarked(c.rec.ID)
	}
	return fail(codes.DeadlineExceeded, errors.New("it was killed and is not gone"))
}

// settled tells whether the container runs, once it is not just being started.
func (r *Runtime) settled(ctx context.Context, c *container) (runs bool, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r.look(c)
		switch c.state() {
		case runtimeapi.ContainerState_CONTAINER_RUNNING:
			return true, nil
		case runtimeapi.ContainerState_CONTAINER_EXITED:
			return false, nil
		}
		c.mu.Lock()
		starting := c.starting
		c.mu.Unlock()
		alive, err := isAlive(r.dir.alive(c.rec.ID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if !alive && !starting {
			r.look(c) // it may have come and gone between the two looks
			return c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// endsWithin waits for the end of the container. An error is ctx's, or the
// FIFO's.
func (r *Runtime) endsWithin(ctx context.Context, c *container, d time.Duration) (bool, error) {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := awaitEnd(wait, r.dir.alive(c.rec.ID))
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		r.look(c)
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case wait.Err() != nil:
		return false, nil
	}
	return false, err
}

// ReopenContainerLog makes the supervisor write to a new file, after the log
// was renamed, and returns when the file exists. A container that does not
// run is FailedPrecondition.
func (r *Runtime) ReopenContainerLog(ctx context.Context, containerID string) error {
	c, err := r.get(containerID)
	if err != nil {
		return err
	}
	fail := func(code codes.Code, why any) error {
		return status.Errorf(code, "process: reopen log of container %s: %v", containerID, why)
	}
	if c.state() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return fail(codes.FailedPrecondition, "it does not run")
	}
	if c.rec.Process.LogPath == "" {
		return nil
	}
	c.mu.Lock()
	supervisor := c.process.Supervisor
	c.mu.Unlock()
	if ok, err := signalProcess(supervisor, reopenSignal()); err != nil {
		return fail(codes.Internal, err)
	} else if !ok {
		return fail(codes.FailedPrecondition, "it has just ended")
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(killTimeout)
	for {
		if _, err := os.Stat(c.rec.Process.LogPath); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fail(ctxCode(ctx), ctx.Err())
		case <-late:
			return fail(codes.DeadlineExceeded, "the supervisor made no new file"+r.lastWords(containerID))
		case <-tick.C:
		}
	}
}
