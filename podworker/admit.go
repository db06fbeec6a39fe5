package podworker

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Admitter says whether a pod may run here. It is asked once per life,
// before anything is done for the pod, and not for pods that run already
// (lq-28), unless PipelineConfig.Readmit says so.
type Admitter interface {
	// Admit returns nil, or why the pod may not run.
	Admit(ctx context.Context, pod *v1.Pod) *Refusal
}

// AdmitFunc makes an Admitter of a function.
type AdmitFunc func(ctx context.Context, pod *v1.Pod) *Refusal

// Admit calls f.
func (f AdmitFunc) Admit(ctx context.Context, pod *v1.Pod) *Refusal { return f(ctx, pod) }

// Admitters is an Admitter that asks each in order; the first refusal counts
// (adm-1, adm-9).
type Admitters []Admitter

// Admit implements [Admitter].
func (a Admitters) Admit(ctx context.Context, pod *v1.Pod) *Refusal {
	for _, admitter := range a {
		if refused := admitter.Admit(ctx, pod); refused != nil {
			return refused
		}
	}
	return nil
}

// A Refusal is why a pod may not run here, as its status says it (sl-18). It is
// an error with that message.
type Refusal struct {
	Reason  string // "OutOfcpu", "NodeAffinity"
	Message string

	// NotYet: what is missing may come, as a device whose plugin has not
	// registered. The pod stays Pending and is asked about again, for
	// PipelineConfig.AdmitWithin (L-61). Otherwise it has failed for good
	// (adm-13).
	NotYet bool

	// Victims have to end so that the pod may run, which is then only not yet
	// refused, whatever NotYet says: they are killed with their Ending, and the
	// pod is asked about again when they have finished (adm-10). Those that
	// are not known here, or are ending already, are no more than waited for.
	Victims []Victim
}

// A Victim is a pod that gives way to another.
type Victim struct {
	UID  types.UID
	Kill KillOptions

	// Signal is what there was too little of, for metrics: "cpu". May be empty.
	Signal string
}

func (r *Refusal) Error() string { return r.Message }

func (r *Refusal) notYet() bool { return r.NotYet || len(r.Victims) > 0 }

// admit asks the Admitter about a pod it has not answered about, unless
// something of it runs.
func (p *Pipeline) admit(ctx context.Context, w Work) *Refusal {
	p.mu.Lock()
	since, waits := p.waiting[w.UID]
	p.mu.Unlock()
	if p.cfg.Admit == nil || !w.First && !waits || !p.cfg.Readmit && w.Status.Running() {
		return nil
	}
	refused := p.cfg.Admit.Admit(ctx, w.Pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case refused == nil || !refused.notYet():
		delete(p.waiting, w.UID)
	case !waits:
		p.waiting[w.UID] = now
	case now.Sub(since) >= p.cfg.AdmitWithin:
		delete(p.waiting, w.UID)
		return &Refusal{Reason: refused.Reason, Message: refused.Message}
	}
	return refused
}

// refuse ends a pod that may not run here, or lets it wait.
func (p *Pipeline) refuse(w Work, refused *Refusal) (Next, error) {
	p.event(w.Pod, v1.EventTypeWarning, refused.Reason, refused.Message)
	if refused.notYet() {
		p.report(w.Pod, w.Status, runtime.Ending{})
		return Next{Victims: refused.Victims}, fmt.Errorf("podworker: not admitted yet: %w", refused)
	}
	if p.cfg.Hooks.Refused != nil {
		p.cfg.Hooks.Refused(w.Pod, *refused)
	}
	end := runtime.Ending{Failed: true, Reason: refused.Reason, Message: "Pod was rejected: " + refused.Message}
	next := Next{Terminal: true, Ending: end}
	end.Terminal = true
	p.report(w.Pod, w.Status, end)
	return next, nil
}
