package podworker

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A life is all that decides what happens to a pod next. It is a value: step
// takes one and returns the next, and knows no locks, clocks or goroutines.
type life struct {
	state State

	// pod is the spec last wanted; nil for an orphan, which is known from
	// the runtime only.
	pod    *v1.Pod
	orphan *runtime.Pod

	// grace in seconds once termination is requested; it never grows
	// (inv-4). Nil of an orphan: what the runtime recorded.
	grace *int64

	// cause is why termination was requested first, and ending the word of
	// whoever asked for it (pw-18: the last one).
	cause  Cause
	ending runtime.Termination

	removed bool // no source wants it
	mayRun  bool // something of it may run that an earlier agent started
	deleted bool // no source wants it, or the API says so: its content may go
	unheard bool // the API's deletion came during a Cleanup, which does not know of it
	evicted bool // its containers may go while the object stays
	again   bool // wanted anew while it was ending (pw-14): start over when finished

	// doom is the kill that came after the pod was wanted anew: it ends the
	// life after this one, too, before that starts anything. Else nil.
	doom *KillOptions
}

// An input is one thing that happens to a life: wanted, shown, unwanted, killed,
// found, turn or returned.
type input any

type (
	// wanted: a source says what the pod should be. first tells that the pod
	// has not been seen before, create that the source has just begun to want
	// it, stopped that the runtime holds nothing running of it, static that it
	// waits for its turn.
	wanted struct {
		pod                            *v1.Pod
		create, first, static, stopped bool
	}

	// shown: the pod's record has another status than before.
	shown struct{ pod *v1.Pod }

	// unwanted: no source wants the pod any more.
	unwanted struct{}

	// killed: the agent ends the pod for a reason of its own.
	killed struct{ opts KillOptions }

	// found: the runtime holds a pod that nobody knows.
	found struct {
		orphan *runtime.Pod
		grace  *int64
	}

	// turn: a worker is there for the pod. mayStart tells whether one that
	// waits has its turn.
	turn struct{ mayStart bool }

	// returned: the call in flight has.
	returned struct {
		call     call
		terminal bool
		ending   runtime.Termination // why it is terminal
		err      error
	}
)

// An effect is what a step asks the worker around it to do.
type effect struct {
	wake    bool    // there is something to do
	cancel  bool    // the call in flight is out of date (pw-22)
	call    call    // to be made now
	outcome Outcome // what those who wait for the end are told; zero: nothing yet
}

// step returns what becomes of a life when something happens to it, and what is
// to be done about it. All decisions on lives are here and below.
func step(l life, in input) (life, effect) {
	switch in := in.(type) {
	case wanted:
		return l.want(in)
	case shown:
		return l.show(in.pod)
	case unwanted:
		return l.remove()
	case killed:
		l.evicted = l.evicted || in.opts.Evict
		if l.again {
			l.doom = &in.opts
		}
		return l.stop(CauseKilled, in.opts.GracePeriodSeconds, in.opts.Ending)
	case found:
		l = life{state: Stopping, orphan: in.orphan, deleted: true, cause: CauseOrphan}
		l.grace, _ = effectiveGrace(nil, nil, in.grace)
		return l, effect{wake: true}
	case turn:
		return l.begin(in.mayStart)
	case returned:
		return l.end(in)
	default:
		return l, effect{}
	}
}

func (l life) want(in wanted) (life, effect) {
	if in.first {
		l.state = Syncing
		l.mayRun = !in.stopped
		if in.static {
			l.state = Waiting
		}
	}
	if l.orphan != nil || !in.first && l.state >= Stopping && in.create {
		// What is ending goes on ending; what the source wants comes after it
		// (pw-14).
		l.again = true
		return l, effect{}
	}
	if l.again {
		return l, effect{} // meant for the life after this one
	}
	pod := in.pod
	l.pod = pod
	if l.state == Finished {
		if pod.DeletionTimestamp == nil || l.deleted {
			return l, effect{}
		}
		l.state, l.deleted = Cleaning, true
		return l, effect{wake: true}
	}
	terminal := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if in.first && terminal && in.stopped {
		// A pod that ended before the agent started: only what is left of it
		// is cleaned up (pw-11).
		l.state, l.cause = Cleaning, CauseEnded
		l.deleted = pod.DeletionTimestamp != nil
		l.grace, _ = effectiveGrace(nil, pod, nil)
		return l, effect{wake: true}
	}
	switch {
	case pod.DeletionTimestamp != nil:
		l.unheard = l.unheard || l.state == Cleaning && !l.deleted
		l.deleted = true
		return l.stop(CauseDeleted, nil, runtime.Termination{})
	case l.deleted:
		return l.stop(CauseRemoved, nil, runtime.Termination{})
	case terminal:
		return l.stop(CauseEnded, nil, runtime.Termination{})
	}
	return l, effect{wake: l.state < Stopping}
}

func (l life) remove() (life, effect) {
	l.removed, l.deleted, l.again, l.doom = true, true, false, nil
	if l.state >= Stopping {
		return l, effect{wake: l.state != Finished}
	}
	return l.stop(CauseRemoved, nil, runtime.Termination{})
}

// stop requests termination, or hastens it.
func (l life) stop(why Cause, override *int64, ending runtime.Termination) (life, effect) {
	if l.cause == "" {
		l.cause = why
	}
	switch {
	case l.state == Waiting && !l.mayRun:
		// It has started nothing, so there is nothing to stop (pw-31).
		l.ending = ending
		if why != CauseKilled {
			l.state = Finished
			return l, effect{outcome: NeverStarted}
		}
		// Whoever wants it is to hear why it will not run.
		l.state = Cleaning
		l.grace, _ = effectiveGrace(nil, l.pod, override)
		return l, effect{wake: true, outcome: NeverStarted}
	case l.state == Cleaning || l.state == Finished:
		return l, effect{outcome: AlreadyStopped} // the caller is told so (lq-6)
	}
	if ending != (runtime.Termination{}) {
		l.ending = ending
	}
	first := l.state <= Syncing
	if first {
		l.state = Stopping
	}
	var shortened bool
	l.grace, shortened = effectiveGrace(l.grace, l.pod, override)
	return l, effect{wake: true, cancel: first || shortened}
}

// A call names the Handler method that is due.
type call int

const (
	callNone call = iota
	callSync
	callTerminate
	callCleanup
)

func (c call) String() string {
	return [...]string{"", "Sync", "Terminate", "Cleanup"}[c]
}

// begin returns what is to be called now.
func (l life) begin(mayStart bool) (life, effect) {
	switch l.state {
	case Waiting:
		if !mayStart {
			return l, effect{}
		}
		l.state = Syncing
		return l, effect{call: callSync}
	case Syncing:
		return l, effect{call: callSync}
	case Stopping:
		l.state = Terminating // acknowledged (pw-44): no Sync from here on (inv-1)
		return l, effect{call: callTerminate}
	case Terminating:
		return l, effect{call: callTerminate}
	case Cleaning:
		l.unheard = false
		return l, effect{call: callCleanup}
	default:
		return l, effect{}
	}
}

// end takes the outcome of a call.
func (l life) end(in returned) (life, effect) {
	if in.err != nil {
		return l, effect{}
	}
	switch {
	case in.call == callSync && in.terminal && l.state == Syncing:
		return l.stop(CauseEnded, nil, in.ending) // pw-39
	case in.call == callTerminate && l.orphan != nil:
		l.state = Finished // pw-41
		return l, effect{outcome: Stopped}
	case in.call == callTerminate:
		l.state = Cleaning // pw-40
		return l, effect{wake: true, outcome: Stopped}
	case in.call == callCleanup && l.unheard:
		return l, effect{wake: true} // the object may go only if it is told so
	case in.call == callCleanup:
		l.state = Finished // pw-42
	}
	return l, effect{}
}

// effectiveGrace returns the seconds a pod has left to stop: the smallest of
// stored, the object's deletionGracePeriodSeconds and override; if all are nil,
// the spec's; never below 1 (pw-23 … pw-25). A zero is a value, not "unset" (lq-7).
// shortened reports that a stop in progress has to be repeated with less time
// (pw-26).
//
// A nil pod is an orphan. As long as no value is given for it, the result is nil:
// the grace period that the runtime recorded, which is not available here. The
// first value replaces it.
func effectiveGrace(stored *int64, pod *v1.Pod, override *int64) (grace *int64, shortened bool) {
	least := stored
	lower := func(v *int64) {
		if v != nil && (least == nil || *v < *least) {
			least = v
		}
	}
	if pod != nil {
		lower(pod.DeletionGracePeriodSeconds)
	}
	lower(override)
	if least == nil && pod == nil {
		return nil, false
	}
	if least == nil {
		least = pod.Spec.TerminationGracePeriodSeconds
	}
	const floor = 1
	if least == nil {
		return new(int64(floor)), false
	}
	g := max(*least, floor)
	if stored == nil {
		return &g, pod == nil
	}
	return &g, g < *stored
}
