package eviction

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Value is an amount, or a part of a signal's capacity. The zero Value is
// nothing at all.
type Value struct {
	// Quantity in bytes, inodes or processes; nil: Percentage is meant.
	Quantity *resource.Quantity

	// Percentage is the part of the capacity, 0 … 1. It has the precision that
	// the kubelet's has (ev-3).
	Percentage float32
}

// Of returns the amount that the Value is of a capacity.
func (v Value) Of(capacity int64) int64 {
	if v.Quantity != nil {
		return v.Quantity.Value()
	}
	part := float64(capacity) * float64(v.Percentage)
	if part >= float64(capacity) { // also where a float has no room for all of it
		return capacity
	}
	return int64(part)
}

// quantity is Of in the form in which messages show it: as it was written, or
// with a binary suffix.
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

// A Threshold is met when less than Value of its Signal is available (ev-4).
type Threshold struct {
	Signal Signal
	Value  Value

	// GracePeriod is for how long it has to be met before pods are evicted.
	// Zero: it is hard (ev-6).
	GracePeriod time.Duration

	// MinReclaim is how far beyond Value the signal has to rise for the
	// threshold to count as resolved. Nil: not at all.
	MinReclaim *Value
}

// Hard reports whether pods are evicted as soon as the threshold is met.
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

// target is how much has to be available: the threshold's value, and, if so
// asked, its minimum reclaim.
func (t Threshold) target(capacity int64, reclaim bool) int64 {
	n := t.Value.Of(capacity)
	if reclaim && t.MinReclaim != nil {
		n = add(n, t.MinReclaim.Of(capacity))
	}
	return n
}

// met holds the threshold against an observation. Equal is not met (ev-4).
func (t Threshold) met(o Observation, reclaim bool) bool {
	return t.target(o.Capacity, reclaim) > o.Available
}

// same reports whether two thresholds are one, as hysteresis and grace periods
// have it: everything but the grace period's effect is in the key.
func (t Threshold) same(o Threshold) bool {
	return t.Signal == o.Signal && t.GracePeriod == o.GracePeriod && t.Value.equal(o.Value) &&
		(t.MinReclaim == nil) == (o.MinReclaim == nil) && (t.MinReclaim == nil || t.MinReclaim.equal(*o.MinReclaim))
}

func (v Value) equal(o Value) bool {
	if v.Quantity == nil || o.Quantity == nil {
		return v.Quantity == o.Quantity && v.Percentage == o.Percentage
	}
	return v.Quantity.Cmp(*o.Quantity) == 0
}

// add and sub stop at the ends of int64.
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
