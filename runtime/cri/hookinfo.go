package cri

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Hooks observe a Runtime. They are called on the goroutine of the operation and must not
// block. Each may be nil.
type Hooks struct {
	// Acted is called after each action of SyncPod.
	Acted func(ActInfo)

	// Hooked is called after each execution of a lifecycle hook.
	Hooked func(HookInfo)

	// Called is called after each call of the CRI. It must be safe for concurrent use.
	Called func(CallInfo)

	// Traced is called at the end of each SyncPod that performed an action.
	Traced func(Trace)

	// Synced is called at the end of each SyncPod, also if its plan was empty.
	Synced func(SyncInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Acted, o.Acted)
		compose.Add(&h.Hooked, o.Hooked)
		compose.Add(&h.Called, o.Called)
		compose.Add(&h.Traced, o.Traced)
		compose.Add(&h.Synced, o.Synced)
	}
	return h
}

// A SyncInfo contains the plan and the result of one SyncPod. The plan has pointers to the
// pod and its status, which must not be modified.
type SyncInfo struct {
	Pod        *v1.Pod
	Plan       plan.Plan
	Result     runtime.SyncResult
	Begin, End time.Time
}

// An ActInfo describes one action of SyncPod.
type ActInfo struct {
	Pod      *v1.Pod
	Action   runtime.Action
	Duration time.Duration

	// Handler is the runtime handler of a CreatePodSandbox action; "" is the default
	// handler.
	Handler string
}

// A HookInfo describes one execution of a lifecycle hook.
type HookInfo struct {
	Pod       *v1.Pod
	Container string
	Kind      string // PostStart or PreStop
	Duration  time.Duration

	// Err is nil if the hook succeeded. It wraps the context's error if the hook was
	// interrupted, for example by the end of the grace period.
	Err error

	// Insecure reports whether an HTTPS request succeeded only after it was repeated
	// without TLS.
	Insecure bool
}

// A Trace contains the durations of the parts of one SyncPod. Each span begins at the end
// of the previous one.
type Trace struct {
	Pod        *v1.Pod
	Begin, End time.Time
	Spans      []Span
}

// A Span is one part of a SyncPod.
type Span struct {
	// Step is the operation: Plan, KillPod, KillContainer, RemoveContainer,
	// CreatePodSandbox, PullImages, EnsureImage, ConfigContainer, CreateContainer,
	// StartContainer, PostStart, Resize; AwaitTurn before a call that CallConfig.Starts
	// limits; InspectSandbox; Checkpoint.
	Step       string
	Target     string // the container; "" for the pod
	Begin, End time.Time
}

// begin ends the current span, if any, and begins the next.
func (t *Trace) begin(step, target string) {
	now := time.Now()
	t.close(now)
	t.Spans = append(t.Spans, Span{Step: step, Target: target, Begin: now})
}

func (t *Trace) close(now time.Time) {
	if n := len(t.Spans); n > 0 && t.Spans[n-1].End.IsZero() {
		t.Spans[n-1].End = now
	}
}
