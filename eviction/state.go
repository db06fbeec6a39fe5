package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A State is what one pass hands to the next. The zero value is before the first.
type State struct {
	// Met are the thresholds that were met.
	Met []MetState
	// LastMet is when each signal last had a threshold that was met (ev-20).
	LastMet []SignalTime
	// Seen is when the figures of each signal were measured (ev-22).
	Seen []SignalTime
}

// A MetState is a threshold that was met in the last pass.
type MetState struct {
	Threshold Threshold
	Since     time.Time // it has been met without a break
	Acting    bool      // for its grace period: it takes its minimum reclaim to resolve it (ev-18)
}

// A SignalTime is a time of a signal.
type SignalTime struct {
	Signal Signal
	At     time.Time
}

func timeOf(list []SignalTime, s Signal) (time.Time, bool) {
	for i := range list {
		if list[i].Signal == s {
			return list[i].At, true
		}
	}
	return time.Time{}, false
}

// A Met is a threshold that is met.
type Met struct {
	Threshold Threshold
	Observation

	// Since is when it was first seen to be met.
	Since time.Time
	// Waiting: its grace period is not over.
	Waiting bool
	// Held: the signal has passed the threshold, not yet its minimum reclaim.
	Held bool
	// Stale: the figures are those that were acted on before (ev-22).
	Stale bool
	// Deficit is how much has to be freed for it to be resolved.
	Deficit int64
}

// acts reports whether something is to be done for it now.
func (m Met) acts() bool { return !m.Waiting && !m.Stale }

// evaluate holds thresholds against what was seen: which are met, and since when
// (ev-17 … ev-22), and what is to be known of that in the next pass.
func evaluate(thresholds []Threshold, seen []Observation, last State, now time.Time) (met []Met, next State) {
	for _, t := range thresholds {
		o, ok := find(seen, t.Signal)
		if !ok {
			continue // ev-14
		}
		was := slices.IndexFunc(last.Met, func(m MetState) bool { return m.Threshold.same(t) })
		plain := t.met(o, false)
		if !plain && (was < 0 || !last.Met[was].Acting || !t.met(o, true)) {
			continue
		}
		m := Met{Threshold: t, Observation: o, Since: now, Held: !plain, Deficit: sub(t.target(o.Capacity, true), o.Available)}
		if was >= 0 && !last.Met[was].Since.After(now) { // it would be if the clock was set back
			m.Since = last.Met[was].Since
		}
		m.Waiting = now.Sub(m.Since) < t.GracePeriod
		m.Stale = stale(o, last, now)
		met = append(met, m)
		next.Met = append(next.Met, MetState{t, m.Since, !m.Waiting})
	}
	next.LastMet = lastMet(met, last.LastMet, now)
	for _, o := range seen {
		next.Seen = append(next.Seen, SignalTime{o.Signal, o.At})
	}
	return met, next
}

// stale reports whether what was observed had been measured when it was observed
// last. A last time in the future is of a clock that was set back since.
func stale(o Observation, last State, now time.Time) bool {
	before, ok := timeOf(last.Seen, o.Signal)
	return ok && !o.At.IsZero() && !o.At.After(before) && !before.After(now)
}

func lastMet(met []Met, last []SignalTime, now time.Time) (next []SignalTime) {
	for i := range facts {
		s := facts[i].signal
		if slices.ContainsFunc(met, func(m Met) bool { return m.Threshold.Signal == s }) {
			next = append(next, SignalTime{s, now})
		} else if at, ok := timeOf(last, s); ok {
			if at.After(now) {
				at = now // the clock was set back
			}
			next = append(next, SignalTime{s, at})
		}
	}
	return next
}

// conditions returns which of the node's conditions are true (ev-20), sorted, and
// drops from the state the times that matter no more.
func (p Policy) conditions(met []Met, state *State, now time.Time) (all []v1.NodeConditionType) {
	state.LastMet = slices.DeleteFunc(state.LastMet, func(t SignalTime) bool {
		if !t.At.Equal(now) || !slices.ContainsFunc(met, func(m Met) bool { return m.Threshold.Signal == t.Signal }) {
			return now.Sub(t.At) >= p.transition(t.Signal)
		}
		return false
	})
	for _, t := range state.LastMet {
		if c := t.Signal.Condition(); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return all
}
