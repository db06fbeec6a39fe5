package eviction

import "github.com/kubeparts/kubeparts/compose"

// Hooks are called as a [Manager] works, on the goroutine of the pass; they must not block. Any may be nil.
type Hooks struct {
	// Planned is called with the plan of each pass before it is carried out. The plan must not be modified.
	Planned func(*Plan)

	// Passed is called after each pass with the results of [Manager.Pass].
	Passed func(Result, error)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Planned, o.Planned)
		compose.Add2(&h.Passed, o.Passed)
	}
	return h
}

func (h *Hooks) setDefaults() {
	if h.Planned == nil {
		h.Planned = func(*Plan) {}
	}
	if h.Passed == nil {
		h.Passed = func(Result, error) {}
	}
}
