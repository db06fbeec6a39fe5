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

// StartContainer starts the process of a created container and returns when it
// runs. For a container that was started before it returns FailedPrecondition.
//
// If the command cannot be executed, the container exits with code 128 and reason
// StartError. If the supervisor does not start, the container does not change.
//
// ctx applies until the start begins, which takes milliseconds, at most
// StartTimeout. If the agent is killed meanwhile, the next one finds the container
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
	r.refresh(c)
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

// claimStart marks c as starting. Either a concurrent stop of the sandbox sees the
// mark, or claimStart sees that the sandbox is not ready.
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
	// A start by an earlier agent that was killed before it returned.
	if alive, err := isAlive(r.dir.alive(c.rec.ID)); err != nil || alive {
		return refuse(fmt.Sprintf("it is being started by an earlier agent (%v)", err))
	}
	c.starting = true
	return nil
}

// spawn starts a supervisor and waits for its message about the start.
//
// The writing end of the FIFO is open before the fork, so that even if this
// process is killed the container is not taken for one that was never started.
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
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer readEnd.Close()
	defer writeEnd.Close()

	env := append(os.Environ(), envSupervise+"="+id+"@"+string(r.dir))
	p, err := startSupervisor(r.supervisor, env, log, alive, writeEnd)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	// Close the copies, or the exit of the supervisor would not be detected.
	alive.Close()
	writeEnd.Close()
	c.mu.Lock()
	c.supervisor = p
	c.mu.Unlock()

	if err := readEnd.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return err
	}
	messages := json.NewDecoder(readEnd)
	var w supervisorMessage
	if err := messages.Decode(&w); err != nil || !w.Hello {
		// It has not started anything, and is not a supervisor: main did not call
		// Supervise.
		return errors.Join(r.notASupervisor(id, err), r.dismiss(c))
	}
	w = supervisorMessage{}
	switch err := messages.Decode(&w); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("supervisor has not started the process after %v and continues to try", r.timeout)
	case err != nil:
		return fmt.Errorf("supervisor exited before it reported the start: %w%s", err, r.supervisorOutput(id))
	case w.Error != "":
		return errors.New(w.Error)
	}
	return nil
}

// dismiss kills a supervisor that has not started the process yet, and waits for
// its exit, because it holds the FIFO until then.
func (r *Runtime) dismiss(c *container) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.supervisor
	c.supervisor = nil
	if p == nil {
		return nil // already reaped by an inspection
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_, err := p.Wait()
	return err
}

// notASupervisor is the error for a main without Supervise.
func (r *Runtime) notASupervisor(id string, err error) error {
	how := "answered with something else"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		how = fmt.Sprintf("did not answer within %v", r.timeout)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		how = "ended or closed its descriptors without an answer"
	}
	return fmt.Errorf("%s was started as a supervisor and %s; does its main call Supervise? If not: %s%s", r.supervisor[0], how, callSupervise, r.supervisorOutput(id))
}

// supervisorOutput returns the output of the supervisor, to be appended to an error.
func (r *Runtime) supervisorOutput(id string) string {
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
