package pipeline

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// An Allocation records which resources are allocated to pods and decides on resizes.
// allocation.Manager implements it. Its methods are not called concurrently for the same pod.
type Allocation interface {
	// Allocated returns pod with its allocated resources in place of those of the spec.
	// The other subsystems are passed this pod.
	Allocated(pod *v1.Pod) *v1.Pod

	// Allocate is called in each Sync with an admitted pod as its source specifies it,
	// and its observed status. It allocates new resources or rejects them, and returns
	// the pod that Allocated returns from then on.
	Allocate(ctx context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod

	// Resized reports the result of a resize of the running pod to its allocated
	// resources; nil if all of it was done.
	Resized(pod *v1.Pod, err error)

	// Release releases the resources of a pod that does not run and will not run.
	Release(uid types.UID)

	podworker.Retainer
}

// resizePause is the minimum time between two reinspections because of a resize. A resize that
// the runtime never reports as done would otherwise keep the worker busy.
const resizePause = time.Second

// allocated returns pod with its allocated resources.
func (p *Pipeline) allocated(pod *v1.Pod) *v1.Pod {
	if p.cfg.Resources.Allocation == nil {
		return pod
	}
	return p.cfg.Resources.Allocation.Allocated(pod)
}

// resized reports whether actions contain a resize and whether it failed, after reporting the
// result to the Allocation. A canceled call has no result.
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
	if p.cfg.Resources.Allocation != nil {
		p.cfg.Resources.Allocation.Resized(pod, err)
	}
	return true, err != nil
}

// reinspect has a resized pod synced again: at once, by a reinspection, or at the returned time
// if there was a reinspection within resizePause.
func (p *Pipeline) reinspect(uid types.UID, now time.Time) (at time.Time) {
	p.mu.Lock()
	s := p.pods[uid]
	due := s.resized.Add(resizePause)
	if !due.After(now) {
		s.resized, due = now, time.Time{}
		p.storeLocked(uid, s)
	}
	p.mu.Unlock()
	if due.IsZero() {
		p.cfg.Relister.RequestReinspect(uid)
	} else {
		p.cfg.Relister.RequestRelist(uid)
	}
	return due
}
