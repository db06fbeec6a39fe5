package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// defaultTransition is how long a condition remains after its threshold was last met.
const defaultTransition = 5 * time.Minute

// immediateGrace is the grace period in seconds of pods that are evicted immediately.
const immediateGrace = 1

// A Policy is the operator's configuration.
type Policy struct {
	// Thresholds, as [Settings.Parse] returns them. Without any, pods are evicted only for
	// exceeding limits of their own.
	Thresholds []Threshold

	// MaxPodGracePeriod is the grace period in seconds of a pod that is evicted for a soft
	// threshold, unless its own is shorter. Zero, the kubelet's default, terminates the pod
	// immediately.
	MaxPodGracePeriod int64

	// OverwriteGrace applies MaxPodGracePeriod also to pods with a shorter grace period
	// (AllowOverwriteTerminationGracePeriodSeconds).
	OverwriteGrace bool

	// Transition is how long a node condition remains after its threshold was last met.
	// Zero means 5 minutes.
	Transition time.Duration

	// Transitions overrides Transition for some signals. Zero there ends the condition as
	// soon as the signal recovers.
	Transitions map[Signal]time.Duration

	// MaxVictims is the maximum number of pods that one pass evicts for a signal, if that
	// many are estimated to be necessary. Zero means 1, as in the kubelet. With more, too
	// many pods may be evicted, since memory is not released immediately.
	MaxVictims int

	// NoLocalLimits disables evictions for exceeding limits of local storage
	// (localStorageCapacityIsolation: false).
	NoLocalLimits bool

	// KillBackoff is how long a pod is not evicted again after its kill failed. Zero means
	// 1 minute.
	KillBackoff time.Duration

	// MachineMemory is the memory of the node in bytes; a larger working set is rejected as
	// impossible. Zero disables the check.
	MachineMemory int64

	// Critical reports whether a pod must not be evicted and may start on a node under
	// pressure. It must depend on the pod alone. If nil, static pods, mirror pods and those
	// of a system-critical priority are critical. An agent all of whose pods are static
	// must set it, or no pod would ever be evicted.
	Critical func(pod *v1.Pod) bool `json:"-"`

	// Spare returns the reason why a pod is spared from evictions for the node's resources,
	// or "" if it is not; evictions for limits of the pod's own are not affected. absolute
	// exempts the pod, at the risk that the kernel kills processes instead; otherwise the pod
	// is ranked after all others. It is called for each pod when pods are ranked. If nil, no
	// pod is spared.
	Spare func(pod *v1.Pod) (reason string, absolute bool) `json:"-"`

	// Rank replaces the order in which pods are evicted for a signal: order is negative if
	// a is evicted before b, and reason explains it in the [Candidate] and the
	// [Explanation]. Zero leaves the pair to the kubelet's order. The order must be a strict weak
	// ordering that depends on the arguments only. Spare precedes it; exempt pods
	// are ranked but not evicted. If nil, the kubelet's order is used:
	//
	// Pods without stats are evicted first; then those whose usage exceeds their request,
	// for process IDs all; then those of lower priority; then those with the larger excess
	// of usage over request, for process IDs with more processes. For process IDs the
	// priority precedes all of these. Ties are broken by age, the youngest first, then by
	// name. Pods that could not be measured come last.
	Rank func(s Signal, a, b *Candidate) (order int, reason string) `json:"-"`
}

// Validate returns an error that names every invalid setting.
func (p Policy) Validate() error {
	var errs []error
	for _, t := range p.Thresholds {
		switch {
		case !t.Signal.supported():
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
		if !signal.supported() {
			errs = append(errs, unsupported(signal))
		} else if d := p.Transitions[signal]; d < 0 {
			errs = append(errs, fmt.Errorf("invalid configuration: the transition period %v of %s must not be negative", d, signal))
		}
	}
	if p.MaxVictims < 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: MaxVictims %d must not be negative", p.MaxVictims))
	}
	if p.KillBackoff < 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: KillBackoff %v must not be negative", p.KillBackoff))
	}
	return errors.Join(errs...)
}

func (p Policy) transition(s Signal) time.Duration {
	if d, ok := p.Transitions[s]; ok {
		return d
	}
	if p.Transition == 0 {
		return defaultTransition
	}
	return p.Transition
}

// withoutDisks returns the policy that applies while the file system layout is unknown.
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
	return podspec.IsCritical(pod)
}

// idle reports whether no pod can ever be evicted.
func (p Policy) idle() bool { return len(p.Thresholds) == 0 && p.NoLocalLimits }
