package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// DefaultTransition is for how long a condition stays after its cause (ev-20).
const DefaultTransition = 5 * time.Minute

// immediateGrace is the grace period of pods that have to go at once (ev-52).
const immediateGrace = 1

// A Policy is what an operator decides.
type Policy struct {
	// Thresholds, as [Settings.Parse] returns them. None: pods are evicted for
	// exceeding their own limits only.
	Thresholds []Threshold

	// MaxPodGracePeriod is how many seconds a pod has that is evicted for a
	// soft threshold, if its own grace period is not shorter. Zero is what the
	// kubelet has: it ends at once (ev-10, ev-52).
	MaxPodGracePeriod int64

	// OverwriteGrace: MaxPodGracePeriod counts also where the pod's own is
	// shorter (AllowOverwriteTerminationGracePeriodSeconds).
	OverwriteGrace bool

	// Transition is for how long a node condition stays after the last time
	// that its threshold was met. Zero: 5 minutes.
	Transition time.Duration

	// Transitions has other times for some signals (F-26). Zero there: the
	// condition goes as soon as the signal recovers.
	Transitions map[Signal]time.Duration

	// MaxVictims is how many pods may be evicted in one pass for a signal, as
	// many as are estimated to be needed (F-20). Zero: 1, as the kubelet; too
	// many are evicted if the estimates are low, since memory is not given back
	// at once.
	MaxVictims int

	// NoLocalLimits: nothing is done about pods that exceed the limits of their
	// local storage (localStorageCapacityIsolation: false, ev-46).
	NoLocalLimits bool

	// Critical says which pods never go, and may always start. It depends on the
	// pod alone. Nil: [Critical], by which static pods are; who has no other pods
	// has to say otherwise.
	Critical func(pod *v1.Pod) bool `json:"-"`

	// Order compares two pods for a signal, negative if a is evicted first; zero leaves
	// the pair to the kubelet's order. It is consulted before everything but Spare, must
	// be a strict weak ordering, and must depend on the two pods alone. If nil, the
	// kubelet's order is used.
	Order func(s Signal, a, b *Rank) int `json:"-"`

	// Compat brings back the kubelet's known faults.
	Compat Compat
}

// check returns what is wrong with p.
func (p Policy) check() error {
	var errs []error
	for _, t := range p.Thresholds {
		switch {
		case !t.Signal.known():
			errs = append(errs, unsupported(t.Signal))
		case t.GracePeriod < 0:
			errs = append(errs, fmt.Errorf("invalid eviction grace period specified: %v, must be a positive value", t.GracePeriod))
		case t.Value.Quantity == nil && !(t.Value.Percentage >= 0 && t.Value.Percentage <= 1):
			errs = append(errs, fmt.Errorf("eviction percentage threshold %v must be between 0%% and 100%%: %s", t.Signal, t.Value))
		}
	}
	if p.MaxPodGracePeriod < 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: evictionMaxPodGracePeriod %d must not be negative", p.MaxPodGracePeriod))
	}
	if p.Transition < 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: evictionPressureTransitionPeriod %v must not be negative", p.Transition))
	}
	for _, signal := range slices.Sorted(maps.Keys(p.Transitions)) {
		if !signal.known() {
			errs = append(errs, unsupported(signal))
		} else if d := p.Transitions[signal]; d < 0 {
			errs = append(errs, fmt.Errorf("invalid configuration: the transition period %v of %s must not be negative", d, signal))
		}
	}
	if p.MaxVictims < 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: MaxVictims %d must not be negative", p.MaxVictims))
	}
	return errors.Join(errs...)
}

func (p Policy) transition(s Signal) time.Duration {
	if d, ok := p.Transitions[s]; ok {
		return d
	}
	if p.Transition == 0 {
		return DefaultTransition
	}
	return p.Transition
}

// withoutDisks returns the policy for when it is not known which file systems there are.
func (p Policy) withoutDisks() Policy {
	p.NoLocalLimits = true
	p.Thresholds = slices.DeleteFunc(slices.Clone(p.Thresholds), func(t Threshold) bool {
		return !t.Signal.isMemory() && t.Signal != PIDAvailable
	})
	return p
}

func (p Policy) critical(pod *v1.Pod) bool {
	if p.Critical != nil {
		return p.Critical(pod)
	}
	return Critical(pod)
}

// idle reports whether there is nothing to look after (ev-15).
func (p Policy) idle() bool { return len(p.Thresholds) == 0 && p.NoLocalLimits }
