package cgroups

import (
	"fmt"
	"math"
)

// What the kernel takes of CPU shares, how many a CPU is, and the period of quotas
// in microseconds, with the least quota in it (section 8.1).
const (
	MinShares     = 2
	maxShares     = 262144
	sharesPerCPU  = 1024
	DefaultPeriod = 100_000
	minQuota      = 1000
)

// Shares returns the CPU shares of a request in milli-CPUs (cm-1).
func Shares(milli int64) int64 {
	return min(max(scale(milli, sharesPerCPU), MinShares), maxShares)
}

// Quota returns the microseconds of CPU time in a period of so many that a limit in
// milli-CPUs comes to; 0, which is no quota, for 0 (cm-2).
func Quota(milli, period int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(scale(milli, period), minQuota)
}

// scale is milli*units/1000 without an overflow.
func scale(milli, units int64) int64 {
	if milli <= 0 || units <= 0 {
		return 0
	}
	if milli > math.MaxInt64/units {
		return math.MaxInt64 / 1000
	}
	return milli * units / 1000
}

// MilliOfQuota returns the limit in milli-CPUs of a quota in microseconds per period,
// rounded down; 0 if there is no quota.
func MilliOfQuota(quota, period int64) int64 {
	if quota <= 0 || period <= 0 || quota > math.MaxInt64/1000 {
		return 0
	}
	return quota * 1000 / period
}

// MaxMilliOfShares returns the largest request in milli-CPUs for which Shares returns
// shares. Of maxShares, which stand for every larger request, it is the smallest.
func MaxMilliOfShares(shares int64) int64 {
	return ((min(max(shares, 0), maxShares)+1)*1000 - 1) / sharesPerCPU
}

// A WeightFormula turns CPU shares into the weight of cgroup v2, 1 … 10000.
type WeightFormula int

// The formulas that are in use (F-55).
const (
	// Logarithmic gives 1024 shares the weight 100, the kernel's default. It is
	// that of runc since 1.3.2, crun since 1.23 (cm-4).
	Logarithmic WeightFormula = iota

	// Linear is that of the kubelet 1.32 and of older OCI runtimes: 1024 shares
	// are 39 (cm-3).
	Linear
)

// ParseWeightFormula returns the formula of that name: logarithmic or linear.
func ParseWeightFormula(name string) (WeightFormula, error) {
	switch name {
	case "logarithmic":
		return Logarithmic, nil
	case "linear":
		return Linear, nil
	}
	return 0, fmt.Errorf("cgroups: no formula %q; there are logarithmic and linear", name)
}

// Weight returns the weight of so many CPU shares, which are taken for the nearest
// that there are.
func (f WeightFormula) Weight(shares int64) int64 {
	shares = min(max(shares, MinShares), maxShares)
	if f == Linear {
		return 1 + (shares-MinShares)*9999/262142
	}
	l := math.Log2(float64(shares))
	exponent := (l*l+125*l)/612.0 - 7.0/34.0
	return min(max(int64(math.Ceil(math.Pow(10, exponent))), 1), 10000)
}

// SharesOf returns CPU shares of which the weight is made, the least of them.
func (f WeightFormula) SharesOf(weight int64) int64 {
	weight = min(max(weight, 1), 10000)
	if f == Linear {
		return (weight-1)*262142/9999 + MinShares // cm-3: not always the same weight again
	}
	low, high := int64(MinShares), int64(maxShares)
	for low < high {
		if mid := (low + high) / 2; f.Weight(mid) >= weight {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// MaxSharesOf returns the largest number of CPU shares whose weight is at most
// weight, or one more.
func (f WeightFormula) MaxSharesOf(weight int64) int64 {
	if weight >= 10000 {
		return maxShares
	}
	return f.SharesOf(max(weight, 0) + 1)
}
