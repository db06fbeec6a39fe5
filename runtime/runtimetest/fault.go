package runtimetest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// A Call is one call of a method of runtime.Runtime or of an optional interface.
type Call struct {
	// Method is the name of the method in package runtime: Pods, PodStatus,
	// SyncPod, KillPod, Check, Watch, Exec, CollectGarbage.
	Method string

	// UID of the pod; empty for methods that are not about one pod.
	UID types.UID
}

// A Fault is applied to one call, in the order of the fields. The zero value is
// no fault.
type Fault struct {
	// Lost makes the call take effect before the fault, as when the response is
	// lost. If the fault is an error, the caller gets no result.
	Lost bool

	// Delay is how long the call is delayed. If its ctx is done before, the call
	// returns ctx's error.
	Delay time.Duration

	// Hang blocks the call until its ctx is done.
	Hang bool

	// Err is returned by the call, if not nil.
	Err error

	// Stale makes Pods return the list as of this long ago. Lists are recorded
	// since the first Inject, for at least the last 512 changes.
	Stale time.Duration
}

// Inject makes each call apply the fault that next returns; nil disables it.
// next is called from the goroutine of the call, possibly concurrently, and may
// use the Runtime.
func (r *Runtime) Inject(next func(Call) Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inject = next
	if next != nil && len(r.snapshots) == 0 {
		r.snapshotLocked()
	}
}

// call runs do with the injected fault.
func (r *Runtime) call(ctx context.Context, c Call, do func() error) error {
	return r.callAged(ctx, c, func(time.Duration) error { return do() })
}

// callAged is call for lists; age is Fault.Stale.
func (r *Runtime) callAged(ctx context.Context, c Call, do func(age time.Duration) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	next := r.inject
	r.mu.Unlock()
	if next == nil {
		return do(0)
	}
	f := next(c)
	if f.Lost {
		if err := do(f.Stale); err != nil {
			return err
		}
		return f.strike(ctx)
	}
	if err := f.strike(ctx); err != nil {
		return err
	}
	return do(f.Stale)
}

func (f Fault) strike(ctx context.Context) error {
	if err := pause.For(ctx, f.Delay); err != nil {
		return err
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Err
}
