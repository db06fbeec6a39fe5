package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A planState is the input of a plan from the previous one: the thresholds that were met and the times
// of the measurements. The zero value is the state before the first plan.
type planState struct {
	met      []metState
	lastMet  []signalTime // when a threshold of each signal was last met
	measured []signalTime // when each signal was last measured
}

// A metState is a threshold that was met in the last plan.
type metState struct {
	threshold Threshold
	since     time.Time // when it was first met
	acting    bool      // it has been met for its grace period, and is resolved only by its minimum reclaim
}

type signalTime struct {
	signal Signal
	at     time.Time
}

func timeOf(list []signalTime, s Signal) (time.Time, bool) {
	for i := range list {
		if list[i].signal == s {
			return list[i].at, true
		}
	}
	return time.Time{}, false
}

// A MetThreshold is a threshold that is met, and the observation that met it.
type MetThreshold struct {
	Threshold Threshold
	Observation

	// Since is when the threshold was first met.
	Since time.Time
	// Waiting is true until the grace period has expired.
	Waiting bool
	// Reclaiming is true if the signal has exceeded the threshold, but not yet its minimum
	// reclaim.
	Reclaiming bool
	// Stale is true if an earlier plan was made with the same measurement. It is not acted
	// on again.
	Stale bool
	// Deficit is the amount that must be reclaimed to resolve the threshold.
	Deficit int64
}

// Acts reports whether resources must be reclaimed for the threshold now: its grace period has expired, and the
// measurement was not acted on before.
func (m MetThreshold) Acts() bool { return !m.Waiting && !m.Stale }

// evaluate compares thresholds with observations. It returns those that are met, and the
// state for the next plan.
func evaluate(thresholds []Threshold, observed []Observation, last planState, now time.Time) (met []MetThreshold, next planState) {
	for _, t := range thresholds {
		o, ok := find(observed, t.Signal)
		if !ok {
			continue
		}
		was := slices.IndexFunc(last.met, func(m metState) bool { return m.threshold.equal(t) })
		plain := t.met(o, false)
		if !plain && (was < 0 || !last.met[was].acting || !t.met(o, true)) {
			continue
		}
		m := MetThreshold{Threshold: t, Observation: o, Since: now, Reclaiming: !plain, Deficit: sub(t.target(o.Capacity, true), o.Available)}
		if was >= 0 && !last.met[was].since.After(now) { // false after the clock was set back
			m.Since = last.met[was].since
		}
		m.Waiting = now.Sub(m.Since) < t.GracePeriod
		m.Stale = stale(o, last, now)
		met = append(met, m)
		next.met = append(next.met, metState{t, m.Since, !m.Waiting})
	}
	next.lastMet = lastMet(met, last.lastMet, now)
	for _, o := range observed {
		next.measured = append(next.measured, signalTime{o.Signal, o.At})
	}
	return met, next
}

// stale reports whether the last plan had the same measurement. A last time in the future
// precedes a change of the clock.
func stale(o Observation, last planState, now time.Time) bool {
	before, ok := timeOf(last.measured, o.Signal)
	return ok && !o.At.IsZero() && !o.At.After(before) && !before.After(now)
}

func lastMet(met []MetThreshold, last []signalTime, now time.Time) (next []signalTime) {
	for i := range signalInfos {
		s := signalInfos[i].signal
		if slices.ContainsFunc(met, func(m MetThreshold) bool { return m.Threshold.Signal == s }) {
			next = append(next, signalTime{s, now})
		} else if at, ok := timeOf(last, s); ok {
			if at.After(now) {
				at = now // the clock was set back
			}
			next = append(next, signalTime{s, at})
		}
	}
	return next
}

// conditions returns the node conditions that are true, sorted, and drops the times of
// signals whose transition period has expired from the state.
func (p Policy) conditions(met []MetThreshold, state *planState, now time.Time) (all []v1.NodeConditionType) {
	state.lastMet = slices.DeleteFunc(state.lastMet, func(t signalTime) bool {
		if !t.at.Equal(now) || !slices.ContainsFunc(met, func(m MetThreshold) bool { return m.Threshold.Signal == t.signal }) {
			return now.Sub(t.at) >= p.transition(t.signal)
		}
		return false
	})
	for _, t := range state.lastMet {
		if c := t.signal.Condition(); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return all
}
