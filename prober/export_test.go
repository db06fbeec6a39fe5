package prober

import "github.com/kubeparts/kubeparts/runtime"

// The pure core, for tests.
type (
	State   = state
	Facts   = facts
	Actions = actions
	Phase   = phase
)

const (
	Idle    = idle
	Probing = probing
	Decided = decided
	Ended   = ended
)

// TimingOf returns the timing of a probe.
var TimingOf = timingOf

// NewState returns the state of a worker that has observed an instance.
func NewState(p Phase, id string) State { return State{phase: p, id: id, hasResult: true} }

// Saw returns facts of an instance that runs.
func Saw(id string) Facts { return Facts{id: id, running: true, started: true} }

// With edits facts.
func (f facts) With(edit func(finished, deleting, running, final, started *bool)) Facts {
	edit(&f.finished, &f.deleting, &f.running, &f.final, &f.started)
	return f
}

// Before sets a success from before a restart of the agent.
func (f facts) Before() Facts {
	f.before = runtime.ProbeSuccess
	return f
}

// Observe, Evaluate and Shape export the transitions.
func (s state) Observe(k Kind, f Facts) (State, Actions) { return s.observe(k, f) }

func (s state) Evaluate(k Kind, t Timing, id string, success bool) (State, Actions) {
	r := runtime.ProbeFailure
	if success {
		r = runtime.ProbeSuccess
	}
	return s.evaluate(k, t, id, r)
}

// Shape returns the fields of a state, for comparison.
func (s state) Shape() (id, phase, result string, hasResult bool, alike int) {
	return s.id, s.phase.String(), s.result.String(), s.hasResult, s.alike
}

// Flags returns the actions.
func (a actions) Flags() (changed, begin, end bool) { return a.changed, a.begin, a.end }

// Workers lists the workers of all pods, as "container Kind".
func (m *Manager) Workers() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, p := range m.pods {
		for _, w := range p.workers {
			list = append(list, w.container.Name+" "+w.kind.String())
		}
	}
	return list
}
