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
func (p *Pipeline) admit(ctx context.Context, c *call) error {
	p.mu.Lock()
	since := p.pods[c.UID].deferred
	p.mu.Unlock()
	if p.cfg.Admission.Admitter == nil || !c.First && since.IsZero() || !p.cfg.Admission.Readmit && c.Status.Running() {
		return nil
	}
	r := p.cfg.Admission.Admitter.Admit(ctx, c.Pod)
	now := time.Now()
	switch {
	case r == nil || !waits(r):
		since = time.Time{}
	case since.IsZero():
		since = now
	case now.Sub(since) >= p.cfg.Admission.Timeout:
		since, r = time.Time{}, &runtime.Rejection{Reason: r.Reason, Message: r.Message}
	}
	p.mu.Lock()
	s := p.pods[c.UID]
	s.deferred = since
	p.storeLocked(c.UID, s)
	p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pipeline: admit pod: %w", err) // it was not decided
	}
	if r != nil {
		return r
	}
	return nil
}

// reject fails a rejected pod, or keeps it Pending and returns the error of the call.
func (p *Pipeline) reject(c *call, r *runtime.Rejection) error {
	p.event(c.Pod, v1.EventTypeWarning, r.Reason, r.Message)
	c.result = podworker.SyncResult{}
	if waits(r) {
		p.checkDeadline(c, p.report(c.Pod, c.Status, runtime.Termination{}))
		if c.result.Terminal {
			return nil
		}
		return fmt.Errorf("pipeline: not admitted yet: %w", r)
	}
	if p.cfg.Hooks.Rejected != nil {
		p.cfg.Hooks.Rejected(c.Pod, *r)
	}
	c.Termination = runtime.Termination{Failed: true, Reason: r.Reason, Message: "Pod was rejected: " + r.Message}
	c.end(podworker.SyncResult{Terminal: true, Termination: c.Termination})
	p.reportTerminal(c, c.Status)
	return nil
}
