package cri

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block. Any may be nil.
type Hooks struct {
	// Acted is called after each action of a SyncPod.
	Acted func(ActInfo)

	// Hooked is called after each run of a container's lifecycle hook.
	Hooked func(HookInfo)

	// Called is called after each call of the CRI, from many goroutines.
	Called func(CallInfo)

	// Traced is called at the end of each SyncPod that did something.
	Traced func(Trace)

	// Synced is called at the end of each SyncPod, also of one that found nothing
	// to do.
	Synced func(SyncInfo)
}

// A SyncInfo tells what a SyncPod meant to do, and what came of it. Its Plan points
// into the pod and what was observed of it: who keeps it keeps those.
type SyncInfo struct {
	Pod        *v1.Pod
	Plan       plan.Plan
	Result     runtime.SyncResult
	Begin, End time.Time
}

// An ActInfo tells of one action of a SyncPod.
type ActInfo struct {
	Pod      *v1.Pod
	Action   runtime.Action
	Duration time.Duration

	// Handler of a CreatePodSandbox: the runtime handler of the pod's class; ""
	// is the default.
	Handler string
}

// A HookInfo tells of one run of a lifecycle hook.
type HookInfo struct {
	Pod       *v1.Pod
	Container string
	Kind      string // PostStart or PreStop
	Duration  time.Duration

	// Err is nil if the hook succeeded. It holds the context's error if the
	// hook was cut off, as a sleep that is longer than the grace period.
	Err error

	// Insecure: a request over HTTPS was answered without TLS, and sent again
	// without.
	Insecure bool
}

// A Trace tells where the time of one SyncPod went (L-54). Each span begins
// where the one before it ended, so that together they are the whole of it.
type Trace struct {
	Pod        *v1.Pod
	Begin, End time.Time
	Spans      []Span
}

// A Span is one part of a SyncPod.
type Span struct {
	// Step is what was done: Plan, KillPod, KillContainer, RemoveContainer,
	// CreatePodSandbox, PullImages, EnsureImage, ConfigContainer,
	// CreateContainer, StartContainer, PostStart, Resize.
	Step       string
	Target     string // the container, or "" for the pod
	Begin, End time.Time
}

// begin ends the span that is open, if any, and opens the next.
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
