package podworker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Allocation says which resources a pod has been granted on this node, and
// decides about pods that ask for others. allocation.Manager is one. Calls for
// one pod come one after the other.
type Allocation interface {
	// Allocated returns pod with the resources that it was granted in place
	// of those that it asks for. It is what the other subsystems see.
	Allocated(pod *v1.Pod) *v1.Pod

	// Allocate takes, in each Sync, a pod that was let in, as its source wants
	// it now, and what the runtime shows of it. It grants or refuses what is
	// new in it, and returns what Allocated does from then on.
	Allocate(ctx context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod

	// Resized takes what became of giving the running pod what it was granted:
	// nil if all of it was done.
	Resized(pod *v1.Pod, err error)

	// Release gives back what the pod was granted: nothing of it runs any
	// more, nor will.
	Release(uid types.UID)
}

// resizePause is how long a pod that was just reinspected because of a resize
// waits for the next time: one that the runtime never shows as done would keep
// its worker busy.
const resizePause = time.Second

// granted returns pod with the resources that it was granted.
func (p *Pipeline) granted(pod *v1.Pod) *v1.Pod {
	if p.cfg.Allocation == nil {
		return pod
	}
	return p.cfg.Allocation.Allocated(pod)
}

func (p *Pipeline) release(uid types.UID) {
	if p.cfg.Allocation != nil {
		p.cfg.Allocation.Release(uid)
	}
}

// resized reports whether actions have a resize, and whether it failed, after
// telling the Allocation. One that was called off says nothing.
func (p *Pipeline) resized(ctx context.Context, pod *v1.Pod, actions []runtime.Action) (tried, failed bool) {
	var errs []error
	for _, a := range actions {
		if a.Kind == runtime.ResizePodInPlace {
			tried, errs = true, append(errs, a.Err)
		}
	}
	if !tried || ctx.Err() != nil {
		return false, false
	}
	err := errors.Join(errs...)
	if p.cfg.Allocation != nil {
		p.cfg.Allocation.Resized(pod, err)
	}
	return true, err != nil
}

// lookAgain sees to it that a pod that was resized is synced again: at once, by
// a reinspection, or at the time that it returns, if that was just done.
func (p *Pipeline) lookAgain(uid types.UID, now time.Time) (at time.Time) {
	p.mu.Lock()
	due := p.resizes[uid].Add(resizePause)
	if !due.After(now) {
		p.resizes[uid], due = now, time.Time{}
	}
	p.mu.Unlock()
	if due.IsZero() {
		p.cfg.Reinspect(uid)
	} else {
		p.cfg.Relist(uid)
	}
	return due
}
