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

// killTimeout is the time limit for the exit of a killed container. One that takes
// longer is blocked in the kernel, or its supervisor is.
const killTimeout = 10 * time.Second

// StopContainer sends the stop signal (SIGTERM by default) to the main process,
// waits timeout seconds, and kills the process group. A timeout of 0 or less kills
// immediately.
//
// As with any CRI runtime, only the main process gets the stop signal. When it has
// exited, the remaining processes are killed; StopContainer returns after that.
//
// A container that does not run or does not exist is not an error. When ctx is
// done, its error is returned and the container is left as it is; a call with a
// shorter timeout may follow.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeout int64) error {
	c, err := r.get(containerID)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	// Limits the value to a year, so that the Duration does not overflow.
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
		// The supervisor should have killed it.
		killMarked(c.rec.ID)
	}
	return fail(codes.DeadlineExceeded, errors.New("processes still exist after SIGKILL"))
}

// settled waits for a start in progress and reports whether the container runs.
func (r *Runtime) settled(ctx context.Context, c *container) (runs bool, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r.refresh(c)
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
			r.refresh(c) // it may have started and exited in between
			return c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// endsWithin waits for the exit of the container. An error is ctx's, or from the
// FIFO.
func (r *Runtime) endsWithin(ctx context.Context, c *container, d time.Duration) (bool, error) {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := awaitEnd(wait, r.dir.alive(c.rec.ID))
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		r.refresh(c)
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case wait.Err() != nil:
		return false, nil
	}
	return false, err
}

// ReopenContainerLog makes the supervisor open a new log file, after the log was
// renamed, and returns when the file exists. For a container that does not run it
// returns FailedPrecondition.
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
			return fail(codes.DeadlineExceeded, "the supervisor made no new file"+r.supervisorOutput(containerID))
		case <-tick.C:
		}
	}
}
