package podworker

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A lifecycle is the state from which all decisions about a pod follow. It is a value: step
// returns the next one, without locks, clocks or goroutines.
type lifecycle struct {
	state State

	// pod is the latest spec; nil for an orphan, which only the runtime reports.
	pod    *v1.Pod
	orphan *runtime.Pod

	// grace is the grace period in seconds from Stopping on; it never grows. Nil for an
	// orphan: the one that the runtime recorded.
	grace *int64

	// cause is the first cause of the termination, termination the last reason that was
	// passed.
	cause       cause
	termination runtime.Termination

	end     ending
	mayRun  bool     // containers that an earlier agent started may run
	restart *restart // it starts again when it has finished; nil: it does not
}

// An ending is why a pod may be removed after its containers have terminated. It only advances.
type ending int

const (
	kept           ending = iota // its containers remain, for logs and exit codes
	evicted                      // the containers may be removed while the object exists
	deletionSet                  // the object has a deletionTimestamp, or only the runtime reports the pod
	deletionPassed               // the same, and Cleanup was passed the deletionTimestamp
	removed                      // no source specifies the pod
)

// A restart is a request to start a pod again, which a source added while it was terminating. kill
// came after it, and terminates the restarted pod before it starts any container. Nil: none came.
type restart struct{ kill *KillOptions }

// A cause is why the termination of a pod was first requested. Empty: it was not.
type cause string

const (
	causeDeleted  cause = "deleted"  // the object has a deletionTimestamp
	causeRemoved  cause = "removed"  // no source specifies the pod
	causeTerminal cause = "terminal" // completed, rejected, or past its deadline
	causeKilled   cause = "killed"   // Workers.Kill
	causeOrphaned cause = "orphaned" // only the runtime reports the pod
)

// An input is an event in the lifecycle of a pod: podUpdated, statusUpdated, podRemoved,
// killed, orphanFound, callDue or returned.
type input any

type (
	// podUpdated: a source specifies the pod. first: the worker is new. create: the
	// source has added the pod. stopped: the runtime reports no running container.
	// static: the pod waits for its turn among those of its name.
	podUpdated struct {
		pod                            *v1.Pod
		create, first, static, stopped bool
	}

	// statusUpdated: only the status of the pod's object has changed.
	statusUpdated struct{ pod *v1.Pod }

	// podRemoved: no source specifies the pod any more.
	podRemoved struct{}

	// killed: Workers.Kill was called.
	killed struct{ opts KillOptions }

	// orphanFound: the runtime lists a pod that has no worker.
	orphanFound struct {
		orphan *runtime.Pod
		grace  *int64
	}

	// callDue: a goroutine is available for the pod. mayStart: the pod is the first of
	// its name.
	callDue struct{ mayStart bool }

	// returned: the call in progress has returned.
	returned struct {
		call        call
		terminal    bool
		termination runtime.Termination // the reason if terminal
		err         error
	}
)

// An effect contains the actions of the worker after a step.
type effect struct {
	wake    bool    // the pod is due
	cancel  bool    // the call in progress is out of date
	call    call    // to be made now
	outcome Outcome // to be sent to the callers of Kill; zero: not yet
}

// step returns the lifecycle after an event, and its effect on the worker.
func step(l lifecycle, in input) (lifecycle, effect) {
	switch in := in.(type) {
	case podUpdated:
		return l.update(in)
	case statusUpdated:
		return l.updateStatus(in.pod)
	case podRemoved:
		return l.remove()
	case killed:
		if in.opts.Evict {
			l.end = max(l.end, evicted)
		}
		if l.restart != nil {
			l.restart = &restart{&in.opts}
		}
		return l.stop(causeKilled, in.opts.GracePeriodSeconds, in.opts.Termination)
	case orphanFound:
		l = lifecycle{state: Stopping, orphan: in.orphan, end: deletionSet, cause: causeOrphaned}
		l.grace, _ = effectiveGrace(nil, nil, in.grace)
		return l, effect{wake: true}
	case callDue:
		return l.begin(in.mayStart)
	case returned:
		return l.apply(in)
	default:
		return l, effect{}
	}
}

func (l lifecycle) update(in podUpdated) (lifecycle, effect) {
	if in.first {
		l.state, l.mayRun = Syncing, !in.stopped
		if in.static {
			l.state = Waiting
		}
	}
	if l.restart == nil && (l.orphan != nil || !in.first && l.state >= Stopping && in.create) {
		l.restart = &restart{} // termination is irreversible
	}
	if l.restart != nil {
		return l, effect{} // applies to the restarted pod
	}
	pod, deleted := in.pod, in.pod.DeletionTimestamp != nil
	l.pod = pod
	if l.state == Finished && (!deleted || l.end >= deletionSet) {
		return l, effect{}
	}
	if deleted {
		l.end = max(l.end, deletionSet)
	}
	terminal := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	switch {
	case l.state == Finished:
		l.state = Cleaning
		return l, effect{wake: true}
	case in.first && terminal && in.stopped:
		// The pod terminated before the agent started; only Cleanup is due.
		l.state, l.cause = Cleaning, causeTerminal
		l.grace, _ = effectiveGrace(nil, pod, nil)
		return l, effect{wake: true}
	case deleted:
		return l.stop(causeDeleted, nil, runtime.Termination{})
	case l.end >= deletionSet:
		return l.stop(causeRemoved, nil, runtime.Termination{})
	case terminal:
		return l.stop(causeTerminal, nil, runtime.Termination{})
	}
	return l, effect{wake: l.state < Stopping}
}

func (l lifecycle) remove() (lifecycle, effect) {
	l.end, l.restart = removed, nil
	if l.state >= Stopping {
		return l, effect{wake: l.state != Finished}
	}
	return l.stop(causeRemoved, nil, runtime.Termination{})
}

// stop requests termination, or shortens the grace period of one in progress.
func (l lifecycle) stop(why cause, override *int64, termination runtime.Termination) (lifecycle, effect) {
	if l.cause == "" {
		l.cause = why
	}
	switch {
	case l.state == Waiting && !l.mayRun:
		// No container was started, so none has to be stopped.
		l.termination = termination
		if why != causeKilled {
			l.state = Finished
			return l, effect{outcome: NeverStarted}
		}
		// The status of a killed pod contains the reason; Cleanup reports it.
		l.state = Cleaning
		l.grace, _ = effectiveGrace(nil, l.pod, override)
		return l, effect{wake: true, outcome: NeverStarted}
	case l.state == Cleaning || l.state == Finished:
		return l, effect{outcome: AlreadyStopped}
	}
	if termination != (runtime.Termination{}) {
		l.termination = termination
	}
	first := l.state < Stopping
	l.state = max(l.state, Stopping)
	var shortened bool
	l.grace, shortened = effectiveGrace(l.grace, l.pod, override)
	return l, effect{wake: true, cancel: first || shortened}
}

// A call is a method of the Handler.
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

// begin returns the call that is to be made now.
func (l lifecycle) begin(mayStart bool) (lifecycle, effect) {
	switch l.state {
	case Waiting, Syncing:
		if l.state == Waiting && !mayStart {
			return l, effect{}
		}
		l.state = Syncing
		return l, effect{call: callSync}
	case Stopping:
		l.state = Terminating // acknowledged: no Sync from here on
		return l, effect{call: callTerminate}
	case Terminating:
		return l, effect{call: callTerminate}
	case Cleaning:
		if l.end == deletionSet {
			l.end = deletionPassed
		}
		return l, effect{call: callCleanup}
	default:
		return l, effect{}
	}
}

// apply applies the result of a call.
func (l lifecycle) apply(in returned) (lifecycle, effect) {
	switch {
	case in.err != nil: // it is retried
	case in.call == callSync && in.terminal && l.state == Syncing:
		return l.stop(causeTerminal, nil, in.termination)
	case in.call == callTerminate && l.orphan != nil:
		l.state = Finished
		return l, effect{outcome: Stopped}
	case in.call == callTerminate:
		l.state = Cleaning
		return l, effect{wake: true, outcome: Stopped}
	case in.call == callCleanup && l.end == deletionSet: // while Cleanup was in progress with the earlier object
		return l, effect{wake: true}
	case in.call == callCleanup:
		l.state = Finished
	}
	return l, effect{}
}

// effectiveGrace returns the grace period of a pod in seconds: the minimum of stored, the
// object's deletionGracePeriodSeconds and override; if all are nil, that of the spec; at
// least 1. Zero is a value and does not mean "unset". shortened reports that a termination
// in progress has to be repeated with the shorter period.
//
// A nil pod is an orphan. Its result is nil until a value is passed: the grace period that
// the runtime recorded, which is not available here. The first value replaces it.
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
	g := int64(1)
	if least != nil {
		g = max(g, *least)
	}
	if stored == nil {
		return &g, pod == nil
	}
	return &g, g < *stored
}
