package fakecri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// errDown is returned by calls while the daemon is down, and by those in progress when
// it goes down.
var errDown = status.Error(codes.Unavailable, "fakecri: runtime is down")

// call runs do with the fault of the call. The context of do is also done when the
// daemon goes down; do must call [Runtime.begin] before it changes the state.
func call[T any](ctx context.Context, r *Runtime, c fake.Call, do func(context.Context) (T, error)) (T, error) {
	return callAged(ctx, r, c, func(ctx context.Context, _ time.Duration) (T, error) { return do(ctx) })
}

// act is call for methods that return nothing.
func act(ctx context.Context, r *Runtime, c fake.Call, do func(context.Context) error) error {
	_, err := call(ctx, r, c, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// callLocked is call for methods that only need r.mu, which the caller of do holds.
func callLocked[T any](ctx context.Context, r *Runtime, c fake.Call, do func() (T, error)) (T, error) {
	return call(ctx, r, c, func(ctx context.Context) (none T, err error) {
		if err := r.begin(ctx); err != nil {
			return none, err
		}
		defer r.unlock()
		return do()
	})
}

// actLocked is callLocked for methods that return nothing.
func actLocked(ctx context.Context, r *Runtime, c fake.Call, do func() error) error {
	_, err := callLocked(ctx, r, c, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// onSandbox is callLocked for methods of an existing sandbox, which c.ID names.
func onSandbox[T any](ctx context.Context, r *Runtime, c fake.Call, do func(*sandbox) (T, error)) (T, error) {
	return callLocked(ctx, r, c, func() (none T, err error) {
		s, err := r.sandboxes.find(c.ID)
		if err != nil {
			return none, unknownID("sandbox", c.ID, err)
		}
		return do(s)
	})
}

// onContainer is callLocked for methods of an existing container, which c.ID names.
func onContainer[T any](ctx context.Context, r *Runtime, c fake.Call, do func(*container) (T, error)) (T, error) {
	return callLocked(ctx, r, c, func() (none T, err error) {
		o, err := r.containers.find(c.ID)
		if err != nil {
			return none, unknownID("container", c.ID, err)
		}
		return do(o)
	})
}

// callAged is call for lists; the second argument of do is fake.Fault.Stale.
func callAged[T any](ctx context.Context, r *Runtime, c fake.Call, do func(context.Context, time.Duration) (T, error)) (T, error) {
	var none T
	ctx, n, err := r.enter(ctx, &c)
	if err != nil {
		return none, err
	}
	defer r.leave(n)
	var f fake.Fault
	if r.cfg.Faults != nil {
		f = r.cfg.Faults(c)
	}
	var res T
	err = f.Do(ctx, func(age time.Duration) (err error) {
		res, err = do(ctx, age)
		return err
	})
	switch {
	case down(ctx): // regardless of the result
		return none, errDown
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return none, ended(ctx)
	case err != nil && (f.Lost || f.Err != nil):
		return none, asStatus(c.Method, err)
	}
	return res, err
}

// enter registers and numbers a call.
func (r *Runtime) enter(ctx context.Context, c *fake.Call) (context.Context, int, error) {
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

// begin locks r for a change by a call. It returns an error, without the lock, if the
// call is canceled.
func (r *Runtime) begin(ctx context.Context) error {
	r.mu.Lock()
	if ctx.Err() != nil {
		r.mu.Unlock()
		return ended(ctx)
	}
	return nil
}

// wait waits for d or until the call is canceled.
func wait(ctx context.Context, d time.Duration) error {
	if pause.For(ctx, d) != nil {
		return ended(ctx)
	}
	return nil
}

// down reports whether the daemon went down during the call.
func down(ctx context.Context) bool { return context.Cause(ctx) == errDown }

// ended returns the error of a canceled call.
func ended(ctx context.Context) error {
	if down(ctx) {
		return errDown
	}
	return status.FromContextError(ctx.Err()).Err()
}

// ofSandbox and ofContainer return the call for an ID.
func (r *Runtime) ofSandbox(method, id string) fake.Call {
	c := fake.Call{Method: method, ID: id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, err := r.sandboxes.find(id); err == nil {
		c.Pod = types.UID(s.uid())
	}
	return c
}

func (r *Runtime) ofContainer(method, id string) fake.Call {
	call := fake.Call{Method: method, ID: id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, err := r.containers.find(id); err == nil {
		call.Pod, call.Container = types.UID(c.sandbox.uid()), c.name()
	}
	return call
}
