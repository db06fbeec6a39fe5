package prober

import (
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A phase is where a worker stands with the container that it probes.
//
//	         it runs, and may be probed                 decided
//	idle ───────────────────────────────▶ probing ─────────────────▶ held
//	  ▲                                      │                         │
//	  ├───────── it does not run any more ───┘                         │
//	  ├───────────────── there is another instance ────────────────────┘
//	  │
//	  └── there is another instance ── ended ◀── never again, from anywhere
type phase uint8

const (
	idle    phase = iota // nothing to probe at the moment
	probing              // it is run when its time comes
	held                 // the result stands until there is another instance (prober-15)
	ended                // the container, or the pod, is at its end (prober-9)
)

// String returns the phase in a word.
func (p phase) String() string {
	return [...]string{"idle", "probing", "held", "ended"}[p]
}

// A state is what a worker knows. The zero value is a new worker's.
type state struct {
	// id of the instance that all the rest is about, "" before the first.
	id    string
	phase phase

	// known: there is a result (prober-61), which may be that it is unknown.
	known  bool
	result runtime.ProbeResult

	// last is how the last run ended, and alike how many in a row ended so
	// (prober-22).
	last  runtime.ProbeResult
	alike int
}

// facts are what a worker sees of its container.
type facts struct {
	finished bool // the pod is Succeeded or Failed
	deleting bool // the pod has a deletionTimestamp

	// id of the instance that counts, "" if there is none yet.
	id        string
	running   bool
	final     bool // it has exited, and is not started again
	startedAt time.Time

	// started: it has no startup probe, or that has succeeded.
	started bool

	// before is what was said of this instance in an earlier life of the
	// agent: ProbeSuccess, or nothing.
	before runtime.ProbeResult
}

// actions are what follows from a step. The zero value is nothing.
type actions struct {
	changed bool // there is a result, and it is new or another one: tell
	begin   bool // it is probing from now on
	end     bool // it is at its end, and its result is gone
}

// initial is the result before the first run (prober-14).
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

// see is the step that a worker makes whenever it looks at its container. The
// checks have an order, which is the kubelet's (prober-11 … prober-20). After
// it, a worker that is probing may be run.
func (s state) see(k Kind, f facts) (state, actions) {
	var a actions
	switch {
	case f.finished: // prober-12
		return s.over(a)
	case f.id == "": // prober-11, prober-13
		if s.phase == probing { // it was removed, so there is nothing to run it on
			s.phase = idle
		}
		return s, a
	case s.phase == ended && f.id == s.id:
		return s, a
	}
	if f.id != s.id { // prober-14: the result of the instance before is gone
		s = state{id: f.id}
		if f.before == runtime.ProbeSuccess && k != Liveness {
			a.set(&s, f.before)
			if k == Startup { // prober-20: it does not start twice
				s.phase = held
			}
		} else {
			a.set(&s, k.initial())
		}
	}
	switch {
	case s.phase == held: // prober-15
		return s, a
	case !f.running: // prober-16
		a.set(&s, runtime.ProbeFailure)
		s.phase, s.alike = idle, 0
		if f.final { // prober-17, F-10
			return s.over(a)
		}
		return s, a
	case f.deleting && k != Readiness: // prober-18
		a.set(&s, runtime.ProbeSuccess)
		return s.over(a)
	case k != Startup && !f.started: // prober-20
		s.phase = idle
		return s, a
	}
	a.begin = s.phase != probing
	s.phase = probing
	return s, a
}

// judge is the step that a worker makes when a run on the instance id has ended
// with a result. A run that has ended in an error is none (prober-21).
func (s state) judge(k Kind, t Timing, id string, r runtime.ProbeResult) (state, actions) {
	var a actions
	if s.phase != probing || id != s.id {
		return s, a // it came too late
	}
	if r == s.last { // prober-22
		s.alike++
	} else {
		s.last, s.alike = r, 1
	}
	if r == runtime.ProbeFailure && s.alike < t.FailureThreshold ||
		r == runtime.ProbeSuccess && s.alike < t.SuccessThreshold { // prober-23
		return s, a
	}
	a.set(&s, r)                                                    // prober-24
	if k == Startup || k == Liveness && r == runtime.ProbeFailure { // prober-25
		s.phase, s.alike = held, 0
	}
	return s, a
}

// set makes r the result of s.
func (a *actions) set(s *state, r runtime.ProbeResult) {
	a.changed = a.changed || !s.known || s.result != r // prober-62
	s.known, s.result = true, r
}

// over ends s: there is no result any more (prober-9), though the last one is
// still told.
func (s state) over(a actions) (state, actions) {
	if s.phase == ended {
		return s, actions{}
	}
	a.end = true
	s.phase, s.known, s.alike = ended, false, 0
	return s, a
}
