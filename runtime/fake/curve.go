package fake

import (
	"math"
	"time"
)

// A Curve is resource usage over the time since the start. The zero value is no usage.
type Curve struct {
	// Points are sorted by time. Usage is interpolated between two points and constant
	// before the first and after the last. Two points with the same time are a step.
	Points []Point
	// Repeat restarts the curve after the last point.
	Repeat bool
}

// A Point is a point of a Curve.
type Point struct {
	At    time.Duration
	Value float64
}

// At returns the usage at t after the start; it is 0 before the start.
func (c Curve) At(t time.Duration) float64 {
	if len(c.Points) == 0 || t < 0 {
		return 0
	}
	_, t = c.turn(t)
	before := c.Points[0]
	for _, p := range c.Points {
		if p.At > t {
			return between(before, p, t)
		}
		before = p
	}
	return before.Value
}

// Bytes returns At(t) as an integer.
func (c Curve) Bytes(t time.Duration) uint64 { return whole(c.At(t)) }

// Used returns the integral from the start until t, for cores in core-nanoseconds. It
// does not decrease, except by a rounding error of one.
func (c Curve) Used(t time.Duration) uint64 {
	if len(c.Points) == 0 || t <= 0 {
		return 0
	}
	turns, rest := c.turn(t)
	if turns == 0 {
		return whole(c.area(rest))
	}
	// Complete periods are counted as integers, so that rounding does not make the
	// sum decrease.
	one := whole(c.area(c.period()))
	if float64(turns)*float64(one) > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return uint64(turns)*one + min(one, whole(c.area(rest)))
}

// period returns the period of a curve that repeats, else zero.
func (c Curve) period() time.Duration {
	if !c.Repeat || len(c.Points) == 0 {
		return 0
	}
	return c.Points[len(c.Points)-1].At
}

// turn returns the number of complete periods at t, and the rest.
func (c Curve) turn(t time.Duration) (turns int64, rest time.Duration) {
	if p := c.period(); p > 0 {
		return int64(t / p), t % p
	}
	return 0, t
}

// area returns the integral from 0 to t in the first period.
func (c Curve) area(t time.Duration) float64 {
	before := Point{Value: c.Points[0].Value}
	var sum float64
	for _, p := range c.Points {
		if p.At >= t {
			end := between(before, p, t)
			return sum + (before.Value+end)/2*float64(t-before.At)
		}
		sum += (before.Value + p.Value) / 2 * float64(p.At-before.At)
		before = p
	}
	return sum + before.Value*float64(t-before.At)
}

// between returns the interpolated value at t between a and b.
func between(a, b Point, t time.Duration) float64 {
	if b.At <= a.At {
		return b.Value
	}
	return a.Value + (b.Value-a.Value)*float64(t-a.At)/float64(b.At-a.At)
}

// whole converts v to an integer, limited to the valid range.
func whole(v float64) uint64 {
	switch {
	case !(v > 0): // NaN too
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	}
	return uint64(v)
}
