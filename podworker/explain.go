package podworker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Wait is what a pod is waiting for.
type Wait string

// What a pod may be waiting for. Empty: for nothing, it is finished.
const (
	WaitTurn     Wait = "turn"      // a static pod: one of its name has not finished (pw-29)
	WaitLeftOver Wait = "left over" // a static pod: one of its name still runs that an earlier agent left
	WaitPlace    Wait = "place"     // it is due, and Config.Parallel calls are in flight
	WaitStatus   Wait = "status"    // for a look at the runtime that shows what its last call did (pw-36)
	WaitCall     Wait = "call"      // for a call of the Handler to return
	WaitVictims  Wait = "victims"   // for pods that give way to it to finish (adm-10)
	WaitRetry    Wait = "retry"     // its last call failed
	WaitNetwork  Wait = "network"   // its last call failed because the network is not ready
	WaitBackoff  Wait = "back-off"  // what failed is not tried before then
	WaitDeadline Wait = "deadline"  // for a time the Handler named, or a change before
	WaitResync   Wait = "resync"    // nothing is to be done; for a change, or the resync
	WaitObject   Wait = "object"    // it is finished, and kept until no source wants it
	WaitSources  Wait = "sources"   // nobody wants it so far, and not every source has spoken
)

// An Explanation tells why a pod is where it is, what it waits for, since when,
// and what comes next (L-22). String says it in words.
type Explanation struct {
	At        time.Time `json:"at"` // when it was asked for
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Static    bool      `json:"static,omitempty"`

	State State     `json:"state"`
	Seen  time.Time `json:"seen"`  // when the pod was first heard of
	Since time.Time `json:"since"` // when the state began

	// Wait is what it waits for, WaitSince since when.
	Wait      Wait      `json:"wait,omitempty"`
	WaitSince time.Time `json:"waitSince,omitzero"`

	// Call is the call in flight, "Sync", "Terminate" or "Cleanup", or the one
	// that is due while it waits for a place; Step what the Handler says that
	// it is at ([Explainer]).
	Call      string    `json:"call,omitempty"`
	CallSince time.Time `json:"callSince,omitzero"`
	Step      string    `json:"step,omitempty"`
	StepSince time.Time `json:"stepSince,omitzero"`

	// Cause is why that step has not been completed, empty if nothing has failed;
	// RetryAt is when it is retried, zero if that is not known ([Blocker]).
	Cause   string    `json:"cause,omitempty"`
	RetryAt time.Time `json:"retryAt,omitzero"`

	// Next is when the next call is made if nothing happens before. Zero: when
	// something happens.
	Next time.Time `json:"next,omitzero"`

	// Containers are what was last seen of them, while they may run.
	Containers []ContainerSeen `json:"containers,omitempty"`

	// Err is what the last call returned, empty if it succeeded; Failures is how
	// many in a row failed.
	Err      string `json:"err,omitempty"`
	Failures int    `json:"failures,omitempty"`

	// For is the pod that it waits for: whose turn it is, or what was left over.
	For types.UID `json:"for,omitempty"`

	// Victims are the pods whose end it waits for, with WaitVictims.
	Victims []types.UID `json:"victims,omitempty"`

	// Termination, if that was requested.
	Termination *Termination `json:"termination,omitempty"`

	// StartsOver: the pod was wanted anew while it was ending (pw-14).
	StartsOver bool `json:"startsOver,omitempty"`

	// Doomed: it was wanted anew, and then killed, so that it does not start
	// over.
	Doomed bool `json:"doomed,omitempty"`

	// Sources that have not spoken, with WaitSources.
	Sources []string `json:"sources,omitempty"`
}

// A Termination tells of the end of a pod.
type Termination struct {
	Cause Cause     `json:"cause"`
	Asked time.Time `json:"asked"`

	// Reason and Message are the word of whoever asked for it.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// GracePeriodSeconds to stop in; nil: what an orphan was made with.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`

	Evicted bool `json:"evicted,omitempty"`
	Deleted bool `json:"deleted,omitempty"` // no source wants it, or the API says so
	Waiters int  `json:"waiters,omitempty"` // how many wait to hear of its end

	// Running names what still runs, as last seen: containers, "sandbox".
	// PreStop names those of them that have a preStop hook, which has its part
	// of the grace before they are told to stop.
	Running []string `json:"running,omitempty"`
	PreStop []string `json:"preStop,omitempty"`
}

// Explain tells why a pod is where it is, and reports whether it is known. It
// does not block.
func (w *Workers) Explain(uid types.UID) (Explanation, bool) {
	e, ok := w.explain(uid)
	if !ok {
		return e, false
	}
	if e.Wait == WaitCall {
		if h, ok := w.cfg.Handler.(Explainer); ok {
			e.Step, e.StepSince = h.Doing(uid)
		}
		if h, ok := w.cfg.Handler.(Blocker); ok {
			e.Cause, e.RetryAt = h.Blocked(uid)
		}
	}
	if e.State < Cleaning {
		// What cannot be read shows nothing running: the error is in Err.
		status, _ := w.cfg.StatusCache.Get(uid)
		e.Containers = containersSeen(status)
		if e.Termination != nil {
			e.Termination.Running = stillRuns(status)
			e.Termination.PreStop = preStops(w.podOf(uid), e.Termination.Running)
		}
	}
	return e, true
}

func (w *Workers) explain(uid types.UID) (Explanation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return Explanation{}, false
	}
	e := Explanation{
		At: time.Now(), UID: uid, State: p.life.state, Seen: p.seen, Since: p.since,
		Failures: p.failures, StartsOver: p.life.again && p.life.doom == nil, Doomed: p.life.doom != nil,
		Static: p.life.pod != nil && runtime.IsStatic(p.life.pod),
	}
	switch {
	case p.life.pod != nil:
		e.Namespace, e.Name = p.life.pod.Namespace, p.life.pod.Name
	case p.life.orphan != nil:
		e.Namespace, e.Name = p.life.orphan.Namespace, p.life.orphan.Name
	}
	if p.err != nil {
		e.Err = p.err.Error()
	}
	w.explainWaitLocked(&e, p)
	if l := p.life; l.cause != "" {
		e.Termination = &Termination{
			Cause: l.cause, Asked: p.asked, Reason: l.ending.Reason, Message: l.ending.Message,
			GracePeriodSeconds: l.grace, Evicted: l.evicted, Deleted: l.deleted, Waiters: len(p.done),
		}
	}
	return e, true
}

// explainWaitLocked fills in what p waits for.
func (w *Workers) explainWaitLocked(e *Explanation, p *worker) {
	state := p.life.state
	switch {
	case p.running:
		e.Wait, e.WaitSince = WaitCall, p.began
		if !p.observed.Load() {
			e.Wait = WaitStatus
		}
		e.Call, e.CallSince = p.calling.String(), p.began
	case state == Finished:
		e.WaitSince = p.since
		if !p.life.deleted && !p.life.again {
			e.Wait = WaitObject
		}
	case state == Waiting && !w.turns.has(p.static, p.uid):
		e.Wait, e.WaitSince = WaitTurn, p.seen
		e.For = w.turns.first(p.static)
	case p.queued:
		e.Wait, e.WaitSince = WaitPlace, p.due
		_, next := p.life.begin(true)
		e.Call = next.call.String()
	default:
		e.Wait, e.WaitSince, e.Next = p.wait, p.called, p.next
		if other, ok := p.err.(*leftOverError); ok && p.wait == WaitLeftOver {
			e.For = other.uid
		}
		if len(p.victims) > 0 {
			e.Wait, e.Victims = WaitVictims, slices.Sorted(maps.Keys(p.victims))
		}
	}
}

// stillRuns names what runs of a pod.
func stillRuns(status *runtime.PodStatus) (names []string) {
	if status == nil {
		return nil
	}
	for _, c := range status.Containers {
		if c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown {
			names = append(names, c.Name)
		}
	}
	for _, s := range status.Sandboxes {
		if s.State == runtime.SandboxReady {
			names = append(names, "sandbox")
			break
		}
	}
	return names
}
