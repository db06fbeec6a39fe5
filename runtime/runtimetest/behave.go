package runtimetest

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Behave sets the behavior of containers with this name, in any pod, or with
// this image, from their next start on. A behavior set for the name takes
// precedence over one set for the image, even if it is the zero Behavior.
// Fields of it that a Runtime does not implement have no effect.
func (r *Runtime) Behave(nameOrImage string, b fake.Behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behaviors == nil {
		r.behaviors = map[string]*fake.Behavior{}
	}
	r.behaviors[nameOrImage] = &b
}

// behavior returns the behavior of c if it is started now.
func (r *Runtime) behavior(pod *v1.Pod, c *v1.Container) *fake.Behavior {
	if r.Decide != nil {
		if b := r.Decide(pod, c); b != nil {
			return b
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behaviorLocked(c)
}

// zero is the default behavior.
var zero fake.Behavior

func (r *Runtime) behaviorLocked(c *v1.Container) *fake.Behavior {
	for _, key := range []string{c.Name, c.Image} {
		if b := r.behaviors[key]; b != nil {
			return b
		}
	}
	return &zero
}

// ReadyAfter returns Behavior.ReadyAfter of an instance, for a simulated
// prober. It returns 0 if the instance does not exist.
func (r *Runtime) ReadyAfter(c runtime.ContainerStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.instances[c.ID]; v != nil {
		return v.behavior.ReadyAfter
	}
	return 0
}

// Inject makes each call apply the fault that next returns; nil disables it.
// The Method of a call is the name of the method in package runtime: Pods,
// PodStatus, SyncPod, KillPod, Check, Watch, Exec, CollectGarbage. Lists are
// recorded since the first Inject, for at least the last 512 changes, for
// Fault.Stale. next is called from the goroutine of the call, possibly
// concurrently, and may use the Runtime.
func (r *Runtime) Inject(next func(fake.Call) fake.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inject = next
	if next != nil && len(r.snapshots) == 0 {
		r.snapshotLocked()
	}
}

// call runs do with the injected fault.
func (r *Runtime) call(ctx context.Context, method string, uid types.UID, do func() error) error {
	return r.callAged(ctx, method, uid, func(time.Duration) error { return do() })
}

// callAged is call for lists; age is Fault.Stale.
func (r *Runtime) callAged(ctx context.Context, method string, uid types.UID, do func(age time.Duration) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	next, number := r.inject, 0
	if next != nil {
		if r.calls == nil {
			r.calls = map[string]int{}
		}
		r.calls[method]++
		number = r.calls[method]
	}
	r.mu.Unlock()
	if next == nil {
		return do(0)
	}
	return next(fake.Call{Method: method, Pod: uid, Number: number}).Do(ctx, do)
}
