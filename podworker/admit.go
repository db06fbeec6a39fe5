package podworker

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Admitter decides whether a pod may run on the node. It is called before
// anything is done for a pod, and again if it deferred the pod; it is not called
// for pods that run already (lq-28), unless PipelineConfig.Readmit is set. It is
// called for several pods at once.
type Admitter interface {
	// Admit returns nil if the pod may run. It must not change the pod.
	Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection
}

// AdmitFunc is a function that implements [Admitter].
type AdmitFunc func(ctx context.Context, pod *v1.Pod) *runtime.Rejection

// Admit calls f.
func (f AdmitFunc) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection { return f(ctx, pod) }

// Admitters is an Admitter that calls each in order and returns the first
// rejection (adm-1, adm-9).
type Admitters []Admitter

// Admit implements [Admitter].
func (a Admitters) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	for _, admitter := range a {
		if r := admitter.Admit(ctx, pod); r != nil {
			return r
		}
	}
	return nil
}

// waits reports whether a rejected pod stays Pending.
func waits(r *runtime.Rejection) bool { return r.Deferred || len(r.Preempt) > 0 }

// admit calls the Admitter for a pod that it has neither admitted nor rejected,
// unless a container of the pod runs.
func (p *Pipeline) admit(ctx context.Context, w SyncRequest) *runtime.Rejection {
	p.mu.Lock()
	since, deferred := p.waiting[w.UID]
	p.mu.Unlock()
	if p.cfg.Admit == nil || !w.First && !deferred || !p.cfg.Readmit && w.Status.Running() {
		return nil
	}
	r := p.cfg.Admit.Admit(ctx, w.Pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case r == nil || !waits(r):
		delete(p.waiting, w.UID)
	case !deferred:
		p.waiting[w.UID] = now
	case now.Sub(since) >= p.cfg.AdmitWithin:
		delete(p.waiting, w.UID)
		return &runtime.Rejection{Reason: r.Reason, Message: r.Message}
	}
	return r
}

// reject fails a rejected pod, or keeps it Pending.
func (p *Pipeline) reject(w SyncRequest, r *runtime.Rejection) (SyncResult, error) {
	p.event(w.Pod, v1.EventTypeWarning, r.Reason, r.Message)
	if waits(r) {
		p.report(w.Pod, w.Status, runtime.Termination{})
		return SyncResult{}, fmt.Errorf("podworker: not admitted yet: %w", r)
	}
	if p.cfg.Hooks.Rejected != nil {
		p.cfg.Hooks.Rejected(w.Pod, *r)
	}
	end := runtime.Termination{Failed: true, Reason: r.Reason, Message: "Pod was rejected: " + r.Message}
	next := SyncResult{Terminal: true, Ending: end}
	end.Terminal = true
	p.report(w.Pod, w.Status, end)
	return next, nil
}
