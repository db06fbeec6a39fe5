package cgroups

import (
	"fmt"
	"math"
)

// The kernel's range of CPU shares, the shares of one CPU, the default period of CPU
// quotas in microseconds, and the minimum quota per period.
const (
	MinShares     = 2
	maxShares     = 262144
	sharesPerCPU  = 1024
	DefaultPeriod = 100_000
	minQuota      = 1000
)

// Shares returns the CPU shares of a request in milli-CPUs, from 2 to 262144.
func Shares(milli int64) int64 {
	return min(max(scale(milli, sharesPerCPU), MinShares), maxShares)
}

// Quota returns the CPU quota in microseconds per period for a limit in milli-CPUs, at
// least 1000; 0, which means no quota, if the limit is 0.
func Quota(milli, period int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(scale(milli, period), minQuota)
}

// scale returns milli*units/1000 without overflow.
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
// shares. For the maximum number of shares, to which all larger requests are limited, it
// returns the smallest such request.
func MaxMilliOfShares(shares int64) int64 {
	return ((min(max(shares, 0), maxShares)+1)*1000 - 1) / sharesPerCPU
}

// A WeightFormula converts CPU shares into the CPU weight of cgroup v2, 1 to 10000.
type WeightFormula int

// The formulas that OCI runtimes use. A pod and its containers should use the same one.
const (
	// Logarithmic converts 1024 shares to weight 100, the kernel's default. runc uses it
	// since 1.3.2, crun since 1.23.
	Logarithmic WeightFormula = iota

	// Linear is the formula of kubelet 1.32 and of older OCI runtimes: 1024 shares become
	// weight 39.
	Linear
)

// ParseWeightFormula returns the formula with the name logarithmic or linear.
func ParseWeightFormula(name string) (WeightFormula, error) {
	switch name {
	case "logarithmic":
		return Logarithmic, nil
	case "linear":
		return Linear, nil
	}
	return 0, fmt.Errorf("cgroups: unknown formula %q; valid formulas are logarithmic and linear", name)
}

// Weight returns the weight for a number of CPU shares, which is clamped to the valid
// range.
func (f WeightFormula) Weight(shares int64) int64 {
	shares = min(max(shares, MinShares), maxShares)
	if f == Linear {
		return 1 + (shares-MinShares)*9999/262142
	}
	l := math.Log2(float64(shares))
	exponent := (l*l+125*l)/612.0 - 7.0/34.0
	return min(max(int64(math.Ceil(math.Pow(10, exponent))), 1), 10000)
}

// SharesOf returns the smallest number of CPU shares whose weight is at least weight.
func (f WeightFormula) SharesOf(weight int64) int64 {
	weight = min(max(weight, 1), 10000)
	if f == Linear {
		return (weight-1)*262142/9999 + MinShares // Weight may return one less for it
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

// MaxSharesOf returns an upper bound of the CPU shares whose weight is at most weight; it
// exceeds the largest such number by at most one.
func (f WeightFormula) MaxSharesOf(weight int64) int64 {
	if weight >= 10000 {
		return maxShares
	}
	return f.SharesOf(max(weight, 0) + 1)
}
