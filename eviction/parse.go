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

// Settings are thresholds as a KubeletConfiguration has them: from signals to
// quantities ("100Mi") or percentages ("10%").
type Settings struct {
	// Hard thresholds. Nil or empty: none; [Settings.WithDefaults] has those of
	// the kubelet.
	Hard map[string]string

	// Soft thresholds, and for how long each has to be met, as "1m30s". All of
	// them need a grace period (ev-5).
	Soft, SoftGracePeriod map[string]string

	// MinimumReclaim goes to the hard and the soft thresholds of its signal
	// (ev-6).
	MinimumReclaim map[string]string

	// EnforcePods: what pods may have in all is limited by a cgroup ("pods" is
	// in enforceNodeAllocatable), so that their memory has the hard thresholds
	// of the node's, too (ev-7).
	EnforcePods bool
}

// Parse returns the thresholds of s, hard ones first, each kind in a fixed order
// of signals. The error has the kubelet's text and names the culprit; if there is
// more than one, all of them, each on a line.
//
// Thresholds of containerfs are left out: they follow from others (ev-8).
// Ignored tells which.
func (s Settings) Parse() ([]Threshold, error) {
	hard, errHard := statements(s.Hard)
	soft, errSoft := statements(s.Soft)
	grace, errGrace := gracePeriods(s.SoftGracePeriod)
	reclaims, errReclaim := minReclaims(s.MinimumReclaim)
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

// Ignored returns the signals of s on which no threshold can be set, because
// theirs follow from others, sorted: worth a line in the log (ev-8).
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

// inOrder goes through a map in the order of signals, unknown ones last.
func inOrder(m map[string]string) []Signal {
	var signals []Signal
	for name := range maps.Keys(m) {
		signals = append(signals, Signal(name))
	}
	slices.SortFunc(signals, func(a, b Signal) int {
		if d := a.place() - b.place(); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	return signals
}

// statements parses thresholds. "0%" and "100%" are ways to have none (ev-2).
func statements(m map[string]string) (thresholds []Threshold, err error) {
	var errs []error
	for _, signal := range inOrder(m) {
		switch v, err := statement(signal, m[string(signal)]); {
		case err != nil:
			errs = append(errs, err)
		case v != nil:
			thresholds = append(thresholds, Threshold{Signal: signal, Value: *v})
		}
	}
	return thresholds, errors.Join(errs...)
}

func statement(signal Signal, text string) (*Value, error) {
	if !signal.known() {
		return nil, unsupported(signal)
	}
	if strings.HasSuffix(text, "%") {
		if text == "0%" || text == "100%" {
			return nil, nil
		}
		part, err := percentage(text)
		switch {
		case err != nil:
			return nil, named(signal, err)
		case !(part >= 0): // nor is it a number
			return nil, fmt.Errorf("eviction percentage threshold %v must be >= 0%%: %s", signal, text)
		case part > 1:
			return nil, fmt.Errorf("eviction percentage threshold %v must be <= 100%%: %s", signal, text)
		}
		return &Value{Percentage: part}, nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return nil, named(signal, err)
	case q.Sign() <= 0:
		return nil, fmt.Errorf("eviction threshold %v must be positive: %s", signal, &q)
	}
	return &Value{Quantity: &q}, nil
}

func gracePeriods(m map[string]string) (map[Signal]time.Duration, error) {
	periods := map[Signal]time.Duration{}
	var errs []error
	for _, signal := range inOrder(m) {
		text := m[string(signal)]
		period, err := time.ParseDuration(text)
		switch {
		case !signal.known():
			errs = append(errs, unsupported(signal))
		case err != nil:
			errs = append(errs, named(signal, err))
		case period < 0:
			errs = append(errs, fmt.Errorf("invalid eviction grace period specified: %v, must be a positive value", text))
		default:
			periods[signal] = period
		}
	}
	return periods, errors.Join(errs...)
}

func minReclaims(m map[string]string) (map[Signal]Value, error) {
	reclaims := map[Signal]Value{}
	var errs []error
	for _, signal := range inOrder(m) {
		if v, err := minReclaim(signal, m[string(signal)]); err != nil {
			errs = append(errs, err)
		} else {
			reclaims[signal] = v
		}
	}
	return reclaims, errors.Join(errs...)
}

func minReclaim(signal Signal, text string) (Value, error) {
	if !signal.known() {
		return Value{}, unsupported(signal)
	}
	if strings.HasSuffix(text, "%") {
		part, err := percentage(text)
		switch {
		case err != nil:
			return Value{}, named(signal, err)
		case !(part > 0):
			return Value{}, fmt.Errorf("eviction percentage minimum reclaim %v must be positive: %s", signal, text)
		}
		return Value{Percentage: part}, nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return Value{}, named(signal, err)
	case q.Sign() < 0:
		return Value{}, fmt.Errorf("negative eviction minimum reclaim specified for %v", signal)
	}
	return Value{Quantity: &q}, nil
}

func unsupported(signal Signal) error { return fmt.Errorf("unsupported eviction signal %v", signal) }

// named says whose value it is: the kubelet's own text ends in what could not be
// parsed, and leaves out where it stood.
func named(signal Signal, err error) error {
	return fmt.Errorf("eviction setting of %v: %w", signal, err)
}

// percentage parses "12.5%" to 0.125.
func percentage(text string) (float32, error) {
	v, err := strconv.ParseFloat(strings.TrimRight(text, "%"), 32)
	return float32(v) / 100, err
}
