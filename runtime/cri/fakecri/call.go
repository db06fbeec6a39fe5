package fakecri

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errDown is what every call gets while the daemon is down, and those that were
// under way when it went down.
var errDown = status.Error(codes.Unavailable, "fakecri: the runtime is down")

// call makes one call of the CRI: it asks for the call's fault and does what
// that says, and do in between. do gets a context that ends also when the
// daemon goes down; it changes things only after [Runtime.begin] let it.
func call[T any](ctx context.Context, r *Runtime, c Call, do func(context.Context) (T, error)) (T, error) {
	return callAged(ctx, r, c, func(ctx context.Context, _ time.Duration) (T, error) { return do(ctx) })
}

// act is call for methods that return nothing.
func act(ctx context.Context, r *Runtime, c Call, do func(context.Context) error) error {
	_, err := call(ctx, r, c, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// callAged is call for lists, which are told how old their answer is to be.
func callAged[T any](ctx context.Context, r *Runtime, c Call, do func(context.Context, time.Duration) (T, error)) (T, error) {
	var none T
	ctx, n, err := r.enter(ctx, &c)
	if err != nil {
		return none, err
	}
	defer r.leave(n)
	var f Fault
	if r.cfg.Faults != nil {
		f = r.cfg.Faults(c)
	}
	if err := pause(ctx, f.Delay); err != nil {
		return none, err
	}
	if !f.Lost {
		if err := f.hit(ctx); err != nil {
			return none, err
		}
	}
	res, err := do(ctx, f.Stale)
	if down(ctx) { // whatever came of it
		return none, errDown
	}
	if f.Lost {
		if err := f.hit(ctx); err != nil {
			return none, err
		}
		return none, status.Errorf(codes.Unavailable, "fakecri: the answer of %s was lost", c.Method)
	}
	return res, err
}

// hit is the part of a fault that fails a call.
func (f Fault) hit(ctx context.Context) error {
	if f.Hang {
		<-ctx.Done()
		return ended(ctx)
	}
	return f.Err
}

// enter lets a call in, and numbers it.
func (r *Runtime) enter(ctx context.Context, c *Call) (context.Context, int, error) {
	if ctx.Err() != nil {
		return nil, 0, ended(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		cancel(errDown)
		return nil, 0, errDown
	}
	r.calls[c.Method]++
	c.Number = r.calls[c.Method]
	r.entered++
	r.inflight[r.entered] = cancel
	return ctx, r.entered, nil
}

func (r *Runtime) leave(n int) {
	r.mu.Lock()
	cancel := r.inflight[n]
	delete(r.inflight, n)
	r.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

// begin locks r for a change that a call makes, if the call is not off by now.
func (r *Runtime) begin(ctx context.Context) error {
	r.mu.Lock()
	if ctx.Err() != nil {
		r.mu.Unlock()
		return ended(ctx)
	}
	return nil
}

// pause waits, until the call is off.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// down reports whether the daemon went down while a call was under way.
func down(ctx context.Context) bool { return context.Cause(ctx) == errDown }

// ended is the error of a call that is off.
func ended(ctx context.Context) error {
	if down(ctx) {
		return errDown
	}
	return status.FromContextError(ctx.Err()).Err()
}

// ofSandbox and ofContainer say whom a call is about.
func (r *Runtime) ofSandbox(method, id string) Call {
	c := Call{Method: method, ID: id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, err := r.sandboxes.find(id); err == nil {
		c.Pod = s.uid()
	}
	return c
}

func (r *Runtime) ofContainer(method, id string) Call {
	call := Call{Method: method, ID: id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, err := r.containers.find(id); err == nil {
		call.Pod, call.Container = c.sandbox.uid(), c.name()
	}
	return call
}
