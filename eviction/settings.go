package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Settings are thresholds in the form of a KubeletConfiguration: maps of signals to
// quantities ("100Mi") or percentages ("10%").
type Settings struct {
	// Hard thresholds. [Settings.WithDefaults] adds those of the kubelet.
	Hard map[string]string

	// Soft thresholds, and how long each must be met before pods are evicted, as "1m30s".
	// Each soft threshold requires a grace period.
	Soft, SoftGracePeriod map[string]string

	// MinimumReclaim applies to the hard and soft thresholds of its signal.
	MinimumReclaim map[string]string

	// EnforcePods is true if a cgroup limits the memory of all pods ("pods" in
	// enforceNodeAllocatable). The hard thresholds of memory.available then also apply to
	// allocatableMemory.available.
	EnforcePods bool
}

// Parse returns the thresholds of s, hard ones first, each kind in a fixed order of signals.
// The error contains the kubelet's text and the setting, one line for each invalid setting.
//
// Thresholds of containerfs are ignored, because they are derived from those of nodefs or
// imagefs; Ignored returns them.
func (s Settings) Parse() ([]Threshold, error) {
	hard, errHard := parseThresholds(s.Hard)
	soft, errSoft := parseThresholds(s.Soft)
	grace, errGrace := parseGracePeriods(s.SoftGracePeriod)
	reclaims, errReclaim := parseMinReclaims(s.MinimumReclaim)
	if err := errors.Join(errHard, errSoft, errGrace, errReclaim); err != nil {
		return nil, err
	}
	var errs []error
	for i := range soft {
		period, ok := grace[soft[i].Signal]
		if !ok {
			errs = append(errs, fmt.Errorf("grace period must be specified for the soft eviction threshold %v", soft[i].Signal))
		}
		soft[i].GracePeriod = period
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := slices.Concat(hard, soft)
	for i, t := range all {
		if least, ok := reclaims[t.Signal]; ok {
			all[i].MinReclaim = &least
		}
	}
	if s.EnforcePods {
		for _, t := range all[:len(hard)] {
			if t.Signal == MemoryAvailable {
				t.Signal = AllocatableMemoryAvailable
				all = append(all, t)
			}
		}
	}
	all = slices.DeleteFunc(all, func(t Threshold) bool { return t.Signal.isContainerFS() })
	return all, nil
}

// Ignored returns the signals of s whose thresholds Parse ignores, sorted. The caller should
// log them.
func (s Settings) Ignored() (signals []Signal) {
	for _, m := range []map[string]string{s.Hard, s.Soft} {
		for name := range m {
			if signal := Signal(name); signal.isContainerFS() && !slices.Contains(signals, signal) {
				signals = append(signals, signal)
			}
		}
	}
	slices.Sort(signals)
	return signals
}

// sortedSignals returns the keys of a map in the order of signalInfos, unsupported ones last.
func sortedSignals(m map[string]string) []Signal {
	var signals []Signal
	for name := range maps.Keys(m) {
		signals = append(signals, Signal(name))
	}
	slices.SortFunc(signals, func(a, b Signal) int {
		if d := a.index() - b.index(); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	return signals
}

// parseThresholds parses thresholds. "0%" and "100%" disable one (rule ev-2).
func parseThresholds(m map[string]string) (thresholds []Threshold, err error) {
	var errs []error
	for _, signal := range sortedSignals(m) {
		switch v, err := parseThreshold(signal, m[string(signal)]); {
		case err != nil:
			errs = append(errs, err)
		case v != nil:
			thresholds = append(thresholds, Threshold{Signal: signal, Value: *v})
		}
	}
	return thresholds, errors.Join(errs...)
}

func parseThreshold(signal Signal, text string) (*Value, error) {
	if !signal.supported() {
		return nil, unsupported(signal)
	}
	if strings.HasSuffix(text, "%") {
		if text == "0%" || text == "100%" {
			return nil, nil
		}
		part, err := parsePercentage(text)
		switch {
		case err != nil:
			return nil, withSignal(signal, err)
		case !(part >= 0): // also true for NaN
			return nil, fmt.Errorf("eviction percentage threshold %v must be >= 0%%: %s", signal, text)
		case part > 1:
			return nil, fmt.Errorf("eviction percentage threshold %v must be <= 100%%: %s", signal, text)
		}
		return &Value{Percentage: part}, nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return nil, withSignal(signal, err)
	case q.Sign() <= 0:
		return nil, fmt.Errorf("eviction threshold %v must be positive: %s", signal, &q)
	}
	return &Value{Quantity: &q}, nil
}

func parseGracePeriods(m map[string]string) (map[Signal]time.Duration, error) {
	periods := map[Signal]time.Duration{}
	var errs []error
	for _, signal := range sortedSignals(m) {
		text := m[string(signal)]
		period, err := time.ParseDuration(text)
		switch {
		case !signal.supported():
			errs = append(errs, unsupported(signal))
		case err != nil:
			errs = append(errs, withSignal(signal, err))
		case period < 0:
			errs = append(errs, fmt.Errorf("invalid eviction grace period specified: %v, must be a positive value", text))
		default:
			periods[signal] = period
		}
	}
	return periods, errors.Join(errs...)
}

func parseMinReclaims(m map[string]string) (map[Signal]Value, error) {
	reclaims := map[Signal]Value{}
	var errs []error
	for _, signal := range sortedSignals(m) {
		if v, err := parseMinReclaim(signal, m[string(signal)]); err != nil {
			errs = append(errs, err)
		} else {
			reclaims[signal] = v
		}
	}
	return reclaims, errors.Join(errs...)
}

func parseMinReclaim(signal Signal, text string) (Value, error) {
	if !signal.supported() {
		return Value{}, unsupported(signal)
	}
	if strings.HasSuffix(text, "%") {
		part, err := parsePercentage(text)
		switch {
		case err != nil:
			return Value{}, withSignal(signal, err)
		case !(part > 0):
			return Value{}, fmt.Errorf("eviction percentage minimum reclaim %v must be positive: %s", signal, text)
		}
		return Value{Percentage: part}, nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return Value{}, withSignal(signal, err)
	case q.Sign() < 0:
		return Value{}, fmt.Errorf("negative eviction minimum reclaim specified for %v", signal)
	}
	return Value{Quantity: &q}, nil
}

func unsupported(signal Signal) error { return fmt.Errorf("unsupported eviction signal %v", signal) }

// withSignal adds the signal to an error; the kubelet's text lacks it.
func withSignal(signal Signal, err error) error {
	return fmt.Errorf("eviction setting of %v: %w", signal, err)
}

// parsePercentage returns 0.125 for "12.5%".
func parsePercentage(text string) (float32, error) {
	v, err := strconv.ParseFloat(strings.TrimRight(text, "%"), 32)
	return float32(v) / 100, err
}
