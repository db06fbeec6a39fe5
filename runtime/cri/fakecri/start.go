package fakecri

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit codes set by containerd, and those of signals.
const (
	codeStartError = 128
	codeUnknown    = 255
	codeTerm       = 128 + 15
	codeKill       = 128 + 9
)

// StartContainer starts a created container. It takes fake.Behavior.StartDelay; a start that fails or
// is canceled leaves the container exited.
func (r *Runtime) StartContainer(ctx context.Context, containerID string) error {
	return act(ctx, r, r.ofContainer("StartContainer", containerID), func(ctx context.Context) error {
		c, start, err := r.beginStart(ctx, containerID)
		if err != nil {
			return err
		}
		err = wait(ctx, c.behavior.StartDelay)
		r.mu.Lock()
		defer r.unlock()
		if down(ctx) || c.starting != start { // the start was abandoned
			return errDown
		}
		if f := c.behavior.Fail; err == nil && f != nil && c.sandbox.pod.failing(c.name(), f) {
			err = refused("start container %s: %s", c.id, cmp.Or(f.Message, f.Reason))
		}
		return r.startedLocked(c, err)
	})
}

// beginStart checks whether the container can be started.
func (r *Runtime) beginStart(ctx context.Context, id string) (c *container, start int, err error) {
	if err := r.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer r.unlock()
	c, err = r.containers.find(id)
	switch {
	case err != nil:
		return nil, 0, unknownID("container", id, err)
	case c.state != runtimeapi.ContainerState_CONTAINER_CREATED:
		return nil, 0, refused("start container %s: it is %v", c.id, stateOf(c.state))
	case c.starting != 0:
		return nil, 0, refused("start container %s: it is being started", c.id)
	case !c.sandbox.ready:
		return nil, 0, r.startedLocked(c, notRunning("start container "+c.id, c.sandbox))
	}
	r.starts++
	c.starting = r.starts
	return c, r.starts, nil
}

// startedLocked completes a start.
func (r *Runtime) startedLocked(c *container, err error) error {
	c.starting = 0
	if err == nil && !c.sandbox.ready {
		err = notRunning("start container "+c.id, c.sandbox)
	}
	if err == nil {
		r.runLocked(c)
		return nil
	}
	r.endedLocked(c, codeStartError, "StartError", words(err))
	return err
}

func (r *Runtime) runLocked(c *container) {
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, now()
	n := c.sandbox.pod.started(c.name())
	if e := c.behavior.Exit; e != nil && (e.Crashes == 0 || n <= e.Crashes) {
		c.end = time.AfterFunc(max(e.After-c.ran, shortest), func() { r.exit(c, e.Code, cmp.Or(e.Reason, reasonOf(e.Code)), true) })
	}
	r.showLocked(c)
	r.beginLocked(c)
	r.containerChangedLocked(c, Created, Running)
	r.publishLocked(c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, c.id)
}

// shortest is the minimum run time of a container that exits without being stopped, so that its
// finish is after its start.
const shortest = time.Millisecond

// exit makes a container exit, if it runs; if due is set, only if the pending exit was not canceled.
func (r *Runtime) exit(c *container, code int32, reason string, due bool) bool {
	r.writeMessage(c)
	r.mu.Lock()
	defer r.unlock()
	if !c.running() || due && c.end == nil {
		return false
	}
	r.endLocked(c, code, reason)
	return true
}

func reasonOf(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

// endLocked makes a running container exit.
func (r *Runtime) endLocked(c *container, code int32, reason string) {
	r.ceaseLocked(c)
	c.stayLocked()
	r.endedLocked(c, code, reason, "")
	if c.gone != nil {
		close(c.gone)
		c.gone = nil
	}
	r.publishLocked(c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, c.id)
}

// stayLocked cancels the pending exits.
func (c *container) stayLocked() {
	for _, t := range []*time.Timer{c.end, c.dying} {
		if t != nil {
			t.Stop()
		}
	}
	c.end, c.dying = nil, nil
}

// endedLocked makes a container exited. A failed start has no event, as in containerd.
func (r *Runtime) endedLocked(c *container, code int32, reason, message string) {
	from := stateOf(c.state)
	c.state, c.ended, c.code, c.reason, c.message = runtimeapi.ContainerState_CONTAINER_EXITED, now(), code, reason, message
	r.showLocked(c)
	r.containerChangedLocked(c, from, Exited)
}

// writeMessage writes the termination message, if a file is mounted for it.
func (r *Runtime) writeMessage(c *container) {
	e := c.behavior.Exit
	if e == nil || e.Message == "" {
		return
	}
	at := c.config.GetAnnotations()["io.kubernetes.container.terminationMessagePath"]
	for _, m := range c.config.GetMounts() {
		if at == "" || path.Clean(m.GetContainerPath()) != path.Clean(at) {
			continue
		}
		f, err := os.OpenFile(m.GetHostPath(), os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = f.WriteString(e.Message)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			r.log.Warn("Failed to write termination message", "containerName", c.name(), "err", err)
		}
	}
}
