package pipeline

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// An Admitter decides whether a pod may run on the node. It is called before any other
// subsystem, and again if it deferred the pod; it is not called for pods that run already,
// unless Admission.Readmit is set. It is called concurrently for different pods.
type Admitter interface {
	// Admit returns nil if the pod may run. It must not change the pod.
	Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection
}

// AdmitFunc is a function that implements [Admitter].
type AdmitFunc func(ctx context.Context, pod *v1.Pod) *runtime.Rejection

// Admit calls f.
func (f AdmitFunc) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection { return f(ctx, pod) }

// Admitters is an Admitter that calls each in order and returns the first rejection.
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

// Admission configures the admission of pods by a [Pipeline].
type Admission struct {
	// Admitter decides. Nil: every pod is admitted.
	Admitter Admitter

	// Readmit also calls Admitter for pods that run already when the agent starts, as the
	// kubelet does; they fail if it rejects them.
	Readmit bool

	// Timeout is how long a deferred pod stays Pending (runtime.Rejection.Deferred) before
	// it is rejected. Zero: 5 minutes.
	Timeout time.Duration
}

// waits reports whether a rejected pod stays Pending.
func waits(r *runtime.Rejection) bool { return r.Deferred || len(r.Preempt) > 0 }

// admit calls the Admitter for a pod that it has neither admitted nor rejected,
// unless a container of the pod runs.
func (p *Pipeline) admit(ctx context.Context, req podworker.SyncRequest) *runtime.Rejection {
	p.mu.Lock()
	since, deferred := p.deferred[req.UID]
	p.mu.Unlock()
	if p.cfg.Admission.Admitter == nil || !req.First && !deferred || !p.cfg.Admission.Readmit && req.Status.Running() {
		return nil
	}
	r := p.cfg.Admission.Admitter.Admit(ctx, req.Pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case r == nil || !waits(r):
		delete(p.deferred, req.UID)
	case !deferred:
		p.deferred[req.UID] = now
	case now.Sub(since) >= p.cfg.Admission.Timeout:
		delete(p.deferred, req.UID)
		return &runtime.Rejection{Reason: r.Reason, Message: r.Message}
	}
	return r
}

// reject fails a rejected pod, or keeps it Pending.
func (p *Pipeline) reject(req podworker.SyncRequest, r *runtime.Rejection) (podworker.SyncResult, error) {
	p.event(req.Pod, v1.EventTypeWarning, r.Reason, r.Message)
	if waits(r) {
		status := p.report(req.Pod, req.Status, runtime.Termination{})
		p.setStart(req.Pod, status)
		late, deadline := pastDeadline(req.Pod, status, time.Now())
		if late {
			return p.exceeded(req.Pod, req.Status), nil
		}
		return podworker.SyncResult{NextSync: deadline}, fmt.Errorf("pipeline: not admitted yet: %w", r)
	}
	if p.cfg.Hooks.Rejected != nil {
		p.cfg.Hooks.Rejected(req.Pod, *r)
	}
	termination := runtime.Termination{Failed: true, Reason: r.Reason, Message: "Pod was rejected: " + r.Message}
	next := podworker.SyncResult{Terminal: true, Termination: termination}
	termination.Terminal = true
	p.report(req.Pod, req.Status, termination)
	return next, nil
}
