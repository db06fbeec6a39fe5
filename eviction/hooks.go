package eviction

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Hooks are called as things happen; they must not block. Any may be nil. All but
// Evicted and KillFailed are called on the goroutine of the pass; those two may
// be called from several at once where more than one pod goes.
type Hooks struct {
	// Passed is called after each pass.
	Passed func(PassInfo)

	// Evicted is called for each pod that was evicted (kubelet_evictions, by
	// Eviction.Signal; ev-29).
	Evicted func(Eviction)

	// KillFailed is called for each pod whose kill failed.
	KillFailed func(Eviction, error)

	// StatsAge is called for each threshold that is met when pods are about to be
	// evicted, with how old its figures are
	// (kubelet_eviction_stats_age_seconds; ev-29).
	StatsAge func(Signal, time.Duration)

	// Invalid is called for figures that cannot be true (F-17).
	Invalid func(Invalid)

	// Conditions is called when the node's conditions change, with those that
	// are true.
	Conditions func([]v1.NodeConditionType)
}

// PassInfo tells of a pass.
type PassInfo struct {
	Result Result
	Err    error
	Took   time.Duration
}

func (h *Hooks) fill() {
	if h.Passed == nil {
		h.Passed = func(PassInfo) {}
	}
	if h.Evicted == nil {
		h.Evicted = func(Eviction) {}
	}
	if h.KillFailed == nil {
		h.KillFailed = func(Eviction, error) {}
	}
	if h.StatsAge == nil {
		h.StatsAge = func(Signal, time.Duration) {}
	}
	if h.Invalid == nil {
		h.Invalid = func(Invalid) {}
	}
	if h.Conditions == nil {
		h.Conditions = func([]v1.NodeConditionType) {}
	}
}
