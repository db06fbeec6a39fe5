package fakecri

import (
	"context"
	"math"
	"time"
)

// StopContainer sends SIGTERM, only once for several calls, waits until the container has exited or
// for timeout seconds, and then kills it. A timeout of 0 kills it immediately. Of concurrent calls
// the one with the earliest deadline kills.
//
// As in containerd, the call itself waits for the grace period: a canceled call does not kill,
// although the container may still exit because of the SIGTERM.
//
// A container that does not run or is unknown is not an error.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeout int64) error {
	return act(ctx, r, r.ofContainer("StopContainer", containerID), func(ctx context.Context) error {
		gone, err := r.term(ctx, containerID, timeout)
		if gone == nil {
			return err
		}
		t := time.NewTimer(seconds(timeout))
		defer t.Stop()
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
			return ended(ctx)
		case <-t.C:
		}
		if err := r.begin(ctx); err != nil {
			return err
		}
		defer r.unlock()
		if c, err := r.containers.find(containerID); err == nil {
			r.killLocked(c)
		}
		return nil
	})
}

// term sends SIGTERM. It returns no channel if there is no exit to wait for.
func (r *Runtime) term(ctx context.Context, id string, timeout int64) (<-chan struct{}, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	c, err := r.containers.find(id)
	switch {
	case err != nil:
		return nil, idempotent("container", id, err)
	case !c.running():
		return nil, nil
	case timeout <= 0:
		r.killLocked(c)
		return nil, nil
	}
	if !c.termed {
		c.termed = true
		r.termLocked(c)
	}
	if !c.running() {
		return nil, nil
	}
	return c.goneLocked(), nil
}

// termLocked delivers SIGTERM to a container.
func (r *Runtime) termLocked(c *container) {
	b := c.behavior
	ignores, delay := b.IgnoreTERM, b.StopDelay
	if c.linger != nil {
		ignores, delay = false, *c.linger
	}
	if ignores || c.hung {
		return
	}
	code := b.StopCode
	if code == 0 {
		code = codeTerm
	}
	if delay <= 0 {
		r.endLocked(c, code, reasonOf(code))
		return
	}
	c.dying = time.AfterFunc(delay, func() {
		r.mu.Lock()
		defer r.unlock()
		if c.running() && c.dying != nil {
			r.endLocked(c, code, reasonOf(code))
		}
	})
}

// killLocked delivers SIGKILL to a container, if it runs.
func (r *Runtime) killLocked(c *container) {
	if c.running() {
		r.endLocked(c, codeKill, reasonOf(codeKill))
	}
}

func seconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
}
