package eviction

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks are called as a [Manager] works; they must not block. Any may be nil. They are
// called on the goroutine of the pass, except Evicted and KillFailed, which may be called
// from several goroutines if more than one pod is evicted in a pass.
type Hooks struct {
	// Passed is called after each pass with the results of [Manager.Pass].
	Passed func(Result, error)

	// Evicted is called for each pod that was evicted. The metric kubelet_evictions counts
	// them by Victim.Signal.
	Evicted func(Victim)

	// KillFailed is called for each pod whose kill failed.
	KillFailed func(Victim, error)

	// StatsAge is called for each threshold that pods are about to be evicted for, with the
	// age of the measurement (kubelet_eviction_stats_age_seconds).
	StatsAge func(Signal, time.Duration)

	// Invalid is called for each impossible measurement, whose Err is the reason.
	Invalid func(Observation)

	// Conditions is called when the node conditions change, with those that are true.
	Conditions func([]v1.NodeConditionType)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add2(&h.Passed, o.Passed)
		compose.Add(&h.Evicted, o.Evicted)
		compose.Add2(&h.KillFailed, o.KillFailed)
		compose.Add2(&h.StatsAge, o.StatsAge)
		compose.Add(&h.Invalid, o.Invalid)
		compose.Add(&h.Conditions, o.Conditions)
	}
	return h
}

func (h *Hooks) setDefaults() {
	if h.Passed == nil {
		h.Passed = func(Result, error) {}
	}
	if h.Evicted == nil {
		h.Evicted = func(Victim) {}
	}
	if h.KillFailed == nil {
		h.KillFailed = func(Victim, error) {}
	}
	if h.StatsAge == nil {
		h.StatsAge = func(Signal, time.Duration) {}
	}
	if h.Invalid == nil {
		h.Invalid = func(Observation) {}
	}
	if h.Conditions == nil {
		h.Conditions = func([]v1.NodeConditionType) {}
	}
}
