package cluster

import (
	"math/bits"
	"sort"
	"time"
)

// A Usage returns the usage of a resource in bytes by a container of the given age. It must
// depend on its argument only. A negative amount counts as zero.
//
// A Usage should compute with integers: the result of a floating point multiplication and
// addition differs between processor architectures, unless each product is converted with
// float64().
type Usage func(age time.Duration) int64

// Constant returns a Usage that does not change.
func Constant(bytes int64) Usage { return func(time.Duration) int64 { return bytes } }

// Growing returns a Usage that starts at bytes and grows by perHour, as with a leak.
func Growing(bytes, perHour int64) Usage {
	return func(age time.Duration) int64 {
		if perHour < 0 {
			return bytes - scale(-perHour, age, time.Hour)
		}
		return bytes + scale(perHour, age, time.Hour)
	}
}

// Bursts returns a Usage that is bytes for the given length at the end of each cycle, and
// zero otherwise. The cycle must be positive; it panics otherwise.
func Bursts(bytes int64, length, cycle time.Duration) Usage {
	if cycle <= 0 {
		panic("cluster: Bursts: cycle is not positive")
	}
	return func(age time.Duration) int64 {
		if age%cycle >= cycle-length {
			return bytes
		}
		return 0
	}
}

// Sum returns a Usage that is the sum of others.
func Sum(all ...Usage) Usage {
	return func(age time.Duration) (sum int64) {
		for _, u := range all {
			sum += u(age)
		}
		return sum
	}
}

// A Step is a measurement of a trace.
type Step struct {
	Age   time.Duration // of the container
	Bytes int64
}

// Steps returns a Usage that has the given values from their ages on, and before the first
// one its value. The steps must be sorted by age. Without a step the usage is zero.
func Steps(steps []Step) Usage {
	if len(steps) == 0 {
		return Constant(0)
	}
	return func(age time.Duration) int64 {
		next := sort.Search(len(steps), func(i int) bool { return steps[i].Age > age })
		return steps[max(next-1, 0)].Bytes
	}
}

// scale returns n·a/b without overflow, at most maxAmount. n, a and b must not be negative,
// and b not zero.
func scale(n int64, a, b time.Duration) int64 {
	high, low := bits.Mul64(uint64(n), uint64(a))
	if high >= uint64(b) {
		return maxAmount
	}
	quotient, _ := bits.Div64(high, low, uint64(b))
	return int64(min(quotient, maxAmount))
}

// at returns the usage at an age, within the bounds of amounts.
func (u Usage) at(age time.Duration) int64 { return min(max(u(age), 0), maxAmount) }
