package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StartContainer starts the process of a container that was created and never
// started, and returns when it runs. Any other container is
// FailedPrecondition: an instance is started once.
//
// A command that cannot be executed leaves an exited container with code 128
// and reason StartError. A supervisor that does not come up leaves the
// container as it was.
//
// ctx counts until the start begins; it takes milliseconds, StartTimeout at
// most. If the agent is killed meanwhile, the next one finds the container
// running, or created if the start had not begun.
func (r *Runtime) StartContainer(ctx context.Context, containerID string) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	c, err := r.get(containerID)
	if err != nil {
		return err
	}
	if err := r.claimStart(c); err != nil {
		return err
	}
	begin := time.Now()
	err = r.spawn(c)
	c.mu.Lock()
	c.starting = false
	c.mu.Unlock()
	r.look(c)
	info := StartInfo{ContainerID: containerID, Took: time.Since(begin), Err: err}
	if err == nil {
		info.PID = c.main().PID
	}
	if r.hooks.Started != nil {
		r.hooks.Started(info)
	}
	if err != nil {
		return status.Errorf(codes.Unknown, "process: start container %s (%s): %v", c.rec.Name, containerID, err)
	}
	return nil
}

// claimStart makes the caller the one that starts c. A sandbox that is being
// stopped sees the claim, or the claim sees that it is not ready any more.
func (r *Runtime) claimStart(c *container) error {
	refuse := func(why string) error {
		return status.Errorf(codes.FailedPrecondition, "process: start container %s (%s): %s", c.rec.Name, c.rec.ID, why)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if s, ok := r.sandboxes[c.rec.SandboxID]; !ok || !s.rec.Ready {
		return refuse("its sandbox is not ready")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state := c.stateLocked(); {
	case c.removed:
		return refuse("it is being removed")
	case state == runtimeapi.ContainerState_CONTAINER_RUNNING:
		return refuse("it runs already")
	case state == runtimeapi.ContainerState_CONTAINER_EXITED:
		return refuse("it has exited; make a new one")
	case c.starting:
		return refuse("it is being started")
	}
	// A start that an earlier agent began and did not live to see the end of.
	if alive, err := isAlive(r.dir.alive(c.rec.ID)); err != nil || alive {
		return refuse(fmt.Sprintf("it is being started by an earlier agent (%v)", err))
	}
	c.starting = true
	return nil
}

// spawn starts a supervisor and listens until it says how the start went.
//
// The writing end of the FIFO is open before the fork: from then on, whatever
// becomes of this process, nobody takes the container for one that was not
// started.
func (r *Runtime) spawn(c *container) error {
	id := c.rec.ID
	alive, err := holdAlive(r.dir.alive(id))
	if err != nil {
		return err
	}
	defer alive.Close()
	log, err := os.OpenFile(r.dir.supervisorLog(id), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	listen, speak, err := os.Pipe()
	if err != nil {
		return err
	}
	defer listen.Close()
	defer speak.Close()

	env := append(os.Environ(), envSupervise+"="+id+"@"+string(r.dir))
	p, err := startSupervisor(r.supervisor, env, log, alive, speak)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	// The copies here must go, or the end of the supervisor would not show.
	alive.Close()
	speak.Close()
	c.mu.Lock()
	c.supervisor = p
	c.mu.Unlock()

	if err := listen.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return err
	}
	words := json.NewDecoder(listen)
	var w word
	if err := words.Decode(&w); err != nil || !w.Hello {
		// It has not begun to do anything, and is not one of ours: main went
		// on to something else.
		return errors.Join(r.notASupervisor(id, err), r.dismiss(c))
	}
	w = word{}
	switch err := words.Decode(&w); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the supervisor has not started the process after %v; it goes on trying", r.timeout)
	case err != nil:
		return fmt.Errorf("the supervisor ended before it could say how the start went: %w%s", err, r.lastWords(id))
	case w.Error != "":
		return errors.New(w.Error)
	}
	return nil
}

// dismiss ends a supervisor that has done nothing yet, and waits for its end,
// as until then it holds the FIFO.
func (r *Runtime) dismiss(c *container) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.supervisor
	c.supervisor = nil
	if p == nil {
		return nil // a look found it ended, and reaped it
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_, err := p.Wait()
	return err
}

// notASupervisor explains the one mistake that everybody makes once.
func (r *Runtime) notASupervisor(id string, err error) error {
	how := "answered with something else"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		how = fmt.Sprintf("did not answer within %v", r.timeout)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		how = "ended or closed its descriptors without an answer"
	}
	return fmt.Errorf("%s was started as a supervisor and %s; does its main call Supervise? If not: %s%s", r.supervisor[0], how, callSupervise, r.lastWords(id))
}

// lastWords is what the supervisor printed, for an error's end.
func (r *Runtime) lastWords(id string) string {
	const most = 1 << 10
	data, err := os.ReadFile(r.dir.supervisorLog(id))
	data = bytes.TrimSpace(data)
	if err != nil || len(data) == 0 {
		return ""
	}
	if len(data) > most {
		data = append([]byte("…"), data[len(data)-most:]...)
	}
	return fmt.Sprintf(" (it printed: %s)", data)
}
