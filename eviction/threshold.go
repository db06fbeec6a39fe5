package eviction

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Value is an amount, or a fraction of a signal's capacity. The zero Value is zero.
type Value struct {
	// Quantity in bytes, inodes or processes. If nil, Percentage is used.
	Quantity *resource.Quantity

	// Percentage is the fraction of the capacity, 0 … 1, in the precision of the kubelet
	// (rule ev-3).
	Percentage float32
}

// Of returns the Value as an amount, for the given capacity.
func (v Value) Of(capacity int64) int64 {
	if v.Quantity != nil {
		return v.Quantity.Value()
	}
	part := float64(capacity) * float64(v.Percentage)
	if part >= float64(capacity) { // a float64 may be unable to represent the capacity
		return capacity
	}
	return int64(part)
}

// quantity is Of as messages show it: as configured, or with a binary suffix.
func (v Value) quantity(capacity int64) *resource.Quantity {
	if v.Quantity != nil {
		return new(v.Quantity.DeepCopy())
	}
	return resource.NewQuantity(v.Of(capacity), resource.BinarySI)
}

// String returns "100Mi" or "10%".
func (v Value) String() string {
	if v.Quantity != nil {
		return v.Quantity.String()
	}
	return strconv.FormatFloat(float64(v.Percentage)*100, 'g', 6, 64) + "%"
}

// A Threshold is met when less than Value of its Signal is available.
type Threshold struct {
	Signal Signal
	Value  Value

	// GracePeriod is how long the threshold must be met before pods are evicted. Zero
	// makes it a hard threshold.
	GracePeriod time.Duration

	// MinReclaim is how far the signal must exceed Value before the threshold counts as
	// resolved. Nil means zero.
	MinReclaim *Value
}

// Hard reports whether the threshold has no grace period.
func (t Threshold) Hard() bool { return t.GracePeriod == 0 }

// String returns "memory.available<100Mi for 1m30s, min reclaim 5%".
func (t Threshold) String() string {
	s := fmt.Sprintf("%s<%s", t.Signal, t.Value)
	if !t.Hard() {
		s += " for " + t.GracePeriod.String()
	}
	if t.MinReclaim != nil {
		s += ", min reclaim " + t.MinReclaim.String()
	}
	return s
}

// target returns the amount that must be available: the threshold's value and, if reclaim
// is set, its minimum reclaim.
func (t Threshold) target(capacity int64, reclaim bool) int64 {
	n := t.Value.Of(capacity)
	if reclaim && t.MinReclaim != nil {
		n = add(n, t.MinReclaim.Of(capacity))
	}
	return n
}

// met reports whether the observation is below the target. An equal amount is not.
func (t Threshold) met(o Observation, reclaim bool) bool {
	return t.target(o.Capacity, reclaim) > o.Available
}

// equal reports whether two thresholds share their state between passes.
func (t Threshold) equal(o Threshold) bool {
	return t.Signal == o.Signal && t.GracePeriod == o.GracePeriod && t.Value.equal(o.Value) &&
		(t.MinReclaim == nil) == (o.MinReclaim == nil) && (t.MinReclaim == nil || t.MinReclaim.equal(*o.MinReclaim))
}

func (v Value) equal(o Value) bool {
	if v.Quantity == nil || o.Quantity == nil {
		return v.Quantity == o.Quantity && v.Percentage == o.Percentage
	}
	return v.Quantity.Cmp(*o.Quantity) == 0
}

// add and sub saturate at the limits of int64.
func add(a, b int64) int64 {
	switch c := a + b; {
	case b > 0 && c < a:
		return math.MaxInt64
	case b < 0 && c > a:
		return math.MinInt64
	default:
		return c
	}
}

func sub(a, b int64) int64 {
	if b == math.MinInt64 {
		return add(add(a, math.MaxInt64), 1)
	}
	return add(a, -b)
}
