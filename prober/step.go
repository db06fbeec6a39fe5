package prober

import (
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A phase is the state of a worker with respect to the container instance.
//
//	         it runs and may be probed                  final result
//	idle ───────────────────────────────▶ probing ─────────────────▶ decided
//	  ▲                                      │                         │
//	  ├─────────── it does not run ──────────┘                         │
//	  ├────────────────────── new instance ────────────────────────────┘
//	  │
//	  └──── new instance ───── ended ◀── no further attempts, from any phase
type phase uint8

const (
	idle    phase = iota // not probed at the moment
	probing              // probed when an attempt is due
	decided              // the result is final for this instance
	ended                // the container or the pod has terminated, or is being deleted
)

// String returns the name of the phase.
func (p phase) String() string {
	return [...]string{"idle", "probing", "decided", "ended"}[p]
}

// A state is the state of a worker. The zero value is the state of a new worker.
type state struct {
	// id of the container instance; empty before the first.
	id    string
	phase phase

	// hasResult is true if there is a result, which may be ProbeUnknown.
	hasResult bool
	result    runtime.ProbeResult

	// last is the outcome of the last attempt, and alike the number of consecutive equal
	// outcomes.
	last  runtime.ProbeResult
	alike int
}

// facts are the observed properties of a container.
type facts struct {
	finished bool // the pod is Succeeded or Failed
	deleting bool // the pod has a deletionTimestamp

	// id of the current instance, empty if there is none yet.
	id        string
	running   bool
	final     bool // it has exited and will not be restarted
	startedAt time.Time

	// started is true if there is no startup probe or it has succeeded.
	started bool

	// before is the result for this instance from before a restart of the agent:
	// ProbeSuccess or ProbeUnknown.
	before runtime.ProbeResult
}

// actions are the consequences of a transition.
type actions struct {
	changed bool // the result is new or has changed
	begin   bool // probing begins
	end     bool // the worker has ended and its result is dropped
}

// initial is the result before the first attempt (rule prober-14).
func (k Kind) initial() runtime.ProbeResult {
	switch k {
	case Readiness:
		return runtime.ProbeFailure
	case Liveness:
		return runtime.ProbeSuccess
	default:
		return runtime.ProbeUnknown
	}
}

// observe is the transition for an observation of the container. The order of the checks is the
// kubelet's (rule prober-11). A worker may make an attempt only if it is probing afterwards.
func (s state) observe(k Kind, f facts) (state, actions) {
	var a actions
	switch {
	case f.finished:
		return s.end(a)
	case f.id == "":
		if s.phase == probing { // the container was removed
			s.phase = idle
		}
		return s, a
	case s.phase == ended && f.id == s.id:
		return s, a
	}
	if f.id != s.id { // the result of the previous instance does not apply
		s = state{id: f.id}
		if f.before == runtime.ProbeSuccess && k != Liveness {
			a.set(&s, f.before)
			if k == Startup { // an instance starts only once
				s.phase = decided
			}
		} else {
			a.set(&s, k.initial())
		}
	}
	switch {
	case s.phase == decided:
		return s, a
	case !f.running:
		a.set(&s, runtime.ProbeFailure)
		s.phase, s.alike = idle, 0
		if f.final {
			return s.end(a)
		}
		return s, a
	case f.deleting && k != Readiness: // a terminating container must not be restarted
		a.set(&s, runtime.ProbeSuccess)
		return s.end(a)
	case k != Startup && !f.started:
		s.phase = idle
		return s, a
	}
	a.begin = s.phase != probing
	s.phase = probing
	return s, a
}

// evaluate is the transition for the outcome of an attempt on the instance id. Attempts that
// returned an error have no effect.
func (s state) evaluate(k Kind, t Timing, id string, r runtime.ProbeResult) (state, actions) {
	var a actions
	if s.phase != probing || id != s.id {
		return s, a // the instance is not probed any more
	}
	if r == s.last {
		s.alike++
	} else {
		s.last, s.alike = r, 1
	}
	if r == runtime.ProbeFailure && s.alike < t.FailureThreshold ||
		r == runtime.ProbeSuccess && s.alike < t.SuccessThreshold {
		return s, a
	}
	a.set(&s, r)
	if k == Startup || k == Liveness && r == runtime.ProbeFailure { // no second failure for one instance
		s.phase, s.alike = decided, 0
	}
	return s, a
}

// set makes r the result of s.
func (a *actions) set(s *state, r runtime.ProbeResult) {
	a.changed = a.changed || !s.hasResult || s.result != r
	s.hasResult, s.result = true, r
}

// end ends the worker: its result is dropped after a last change was delivered.
func (s state) end(a actions) (state, actions) {
	if s.phase == ended {
		return s, actions{}
	}
	a.end = true
	s.phase, s.hasResult, s.alike = ended, false, 0
	return s, a
}
