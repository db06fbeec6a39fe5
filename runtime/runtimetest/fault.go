package runtimetest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// A Call is one call of a method of the contract.
type Call struct {
	// Method is its name in package runtime: Pods, PodStatus, SyncPod,
	// KillPod, Check, Watch, Exec, CollectGarbage.
	Method string

	// UID of the pod it concerns; empty for those that concern none.
	UID types.UID
}

// A Fault is what goes wrong with one call, in the order of the fields. The
// zero value is no fault.
type Fault struct {
	// Lost: the call takes effect first and the fault hits its answer, as
	// when a request times out on its way back. The answer is lost in any
	// case where there is an error.
	Lost bool

	// Delay is how long the call is held up; the end of its ctx cuts it
	// short, with ctx's error.
	Delay time.Duration

	// Hang holds the call up until its ctx ends.
	Hang bool

	// Err is what the call returns. Nil: it goes on.
	Err error

	// Stale: Pods answers what it would have answered this long ago, as far as
	// that is remembered: since the first Inject, and the last 1024 changes.
	Stale time.Duration
}

// Inject has every call of the contract's methods ask next for its fault; nil
// ends that. next is called from the goroutine of the call, so from many at
// once, and may use the Runtime.
func (r *Runtime) Inject(next func(Call) Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inject = next
	if next != nil && len(r.past) == 0 {
		r.rememberLocked()
	}
}

// call does the work of one call, with what is injected.
func (r *Runtime) call(ctx context.Context, c Call, do func() error) error {
	return r.callAged(ctx, c, func(time.Duration) error { return do() })
}

// callAged is call for lists, which are told how old their answer is to be.
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
