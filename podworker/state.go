package podworker

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A State is how far a pod's life has gone. It moves down this list, and each
// state says which Handler method may be called:
//
//	Waiting ──its turn──▶ Syncing ──kill, delete, terminal──▶ Stopping
//	   │                   Sync                                  │ the Sync in flight has returned
//	   │                                                         ▼
//	   │                                                     Terminating ──stopped──▶ Cleaning ──clean──▶ Finished
//	   │                                                      Terminate               Cleanup               ▲
//	   └──────────────────── kill or delete before the start ──────────────────────────────────────────────┘
//
// Only static pods wait; every other begins in Syncing (pw-28). A deletion that
// arrives when all is done brings Finished back to Cleaning once, so that the
// Handler can let the object go.
//
// Stopping is the moment between a request to terminate and its
// acknowledgement by the worker (pw-9): who sets things up for a pod stops at
// Stopping, who tears down waits for Terminating.
type State int

// The states of a pod.
const (
	Waiting     State = iota // known, not started: its turn has not come (pw-29)
	Syncing                  // Sync is called for it
	Stopping                 // termination is requested; a Sync may still be in flight
	Terminating              // Terminate is called until its containers have stopped
	Cleaning                 // nothing runs; Cleanup is called until nothing is left
	Finished                 // nothing will be called any more
)

// String returns the state in lower case: "syncing".
func (s State) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Syncing:
		return "syncing"
	case Stopping:
		return "stopping"
	case Terminating:
		return "terminating"
	case Cleaning:
		return "cleaning"
	case Finished:
		return "finished"
	default:
		return "unknown"
	}
}

// A life is all that decides what happens to a pod next. It is a value: the
// transitions below take one and return the next, and know no locks, clocks or
// goroutines.
type life struct {
	state State

	// pod is the spec last wanted; nil for an orphan, which is known from
	// the runtime only.
	pod    *v1.Pod
	orphan *runtime.Pod

	// grace in seconds once termination is requested; it never grows
	// (inv-4).
	grace *int64

	// ending is the word of whoever asked for the termination (pw-18: the
	// last one).
	ending runtime.Ending

	deleted bool // no source wants it, or the API says so: its content may go
	unheard bool // the API's deletion came during a Cleanup, which does not know of it
	evicted bool // its containers may go while the object stays
	again   bool // wanted anew while it was ending (pw-14): start over when finished
}

// An effect is what a transition asks the worker around it to do.
type effect struct {
	wake   bool // there is something to do
	cancel bool // the call in flight is out of date (pw-22)
	done   bool // the kill that was asked for has nothing left to wait for
}

// want takes a spec from a source. first tells that the pod has not been seen
// before; stopped that the runtime holds nothing running of it.
func (l life) want(pod *v1.Pod, create, first, stopped bool) (life, effect) {
	if l.orphan != nil || !first && l.state >= Stopping && create {
		// What is ending goes on ending; what the source wants comes after it
		// (pw-14).
		l.again = true
		return l, effect{}
	}
	if l.again {
		return l, effect{} // meant for the life after this one
	}
	l.pod = pod
	if l.state == Finished {
		if pod.DeletionTimestamp == nil || l.deleted {
			return l, effect{}
		}
		l.state, l.deleted = Cleaning, true
		return l, effect{wake: true}
	}
	terminal := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if first && terminal && stopped {
		// A pod that ended before the agent started: only what is left of it
		// is cleaned up (pw-11).
		l.state = Cleaning
		l.deleted = pod.DeletionTimestamp != nil
		l.grace, _ = effectiveGrace(nil, pod, nil)
		return l, effect{wake: true}
	}
	if pod.DeletionTimestamp != nil {
		l.unheard = l.state == Cleaning
		l.deleted = true
	}
	if l.deleted || terminal {
		return l.stop(nil, runtime.Ending{})
	}
	return l, effect{wake: l.state < Stopping}
}

// remove says that no source wants the pod any more.
func (l life) remove() (life, effect) {
	l.deleted, l.again = true, false
	if l.state >= Stopping {
		return l, effect{wake: l.state != Finished}
	}
	return l.stop(nil, runtime.Ending{})
}

// kill ends the pod for a reason of the agent's own.
func (l life) kill(opts KillOptions) (life, effect) {
	if opts.Evict {
		l.evicted = true
	}
	return l.stop(opts.GracePeriodSeconds, opts.Ending)
}

// stop requests termination, or hastens it.
func (l life) stop(override *int64, ending runtime.Ending) (life, effect) {
	switch l.state {
	case Waiting:
		// It has started nothing, so there is nothing to stop (pw-31).
		l.state = Finished
		l.ending = ending
		return l, effect{done: true}
	case Cleaning, Finished:
		return l, effect{done: true} // already stopped: the caller is told so (lq-6)
	}
	if ending != (runtime.Ending{}) {
		l.ending = ending
	}
	first := l.state == Syncing
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

// begin returns what is to be called now. mayStart tells whether a waiting pod
// has its turn.
func (l life) begin(mayStart bool) (life, call) {
	switch l.state {
	case Waiting:
		if !mayStart {
			return l, callNone
		}
		l.state = Syncing
		return l, callSync
	case Syncing:
		return l, callSync
	case Stopping:
		l.state = Terminating // acknowledged (pw-44): no Sync from here on (inv-1)
		return l, callTerminate
	case Terminating:
		return l, callTerminate
	case Cleaning:
		l.unheard = false
		return l, callCleanup
	default:
		return l, callNone
	}
}

// end takes the outcome of a call.
func (l life) end(c call, terminal bool, err error) (life, effect) {
	if err != nil {
		return l, effect{}
	}
	switch {
	case c == callSync && terminal && l.state == Syncing:
		return l.stop(nil, runtime.Ending{}) // pw-39
	case c == callTerminate && l.orphan != nil:
		l.state = Finished // pw-41
		return l, effect{done: true}
	case c == callTerminate:
		l.state = Cleaning // pw-40
		return l, effect{wake: true, done: true}
	case c == callCleanup && l.unheard:
		return l, effect{wake: true} // the object may go only if it is told so
	case c == callCleanup:
		l.state = Finished // pw-42
	}
	return l, effect{}
}

// effectiveGrace returns the seconds a pod has left to stop: the smallest of
// what was said before, the object's deletionGracePeriodSeconds and the
// override; if none was said, the spec's; never below 1 (pw-23 … pw-25). A zero
// is a value here, not "unset" (lq-7). shortened reports that an earlier value
// went down (pw-26).
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
	if least == nil && pod != nil {
		least = pod.Spec.TerminationGracePeriodSeconds
	}
	const floor = 1
	if least == nil {
		return new(int64(floor)), false
	}
	g := max(*least, floor)
	return &g, stored != nil && g < *stored
}
