package cgroups

import "math"

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

// MemoryHigh returns the usage in bytes from which the kernel throttles a cgroup of cgroup
// v2 with a memory request and limit (rule cm-38): the position factor, from 0 to 1,
// between the two, rounded down to pages. A page size of zero means 4096. It returns 0,
// which means no throttling, if factor is not positive or the result does not exceed the
// request.
func MemoryHigh(request, limit int64, factor float64, pageSize int64) int64 {
	if pageSize <= 0 {
		pageSize = 4096
	}
	if !(factor > 0) {
		return 0
	}
	if high := int64(float64(request)+factor*float64(limit-request)) / pageSize * pageSize; high > request {
		return high
	}
	return 0
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

// The ranges of shares and weights as the kubelet converts them.
const (
	maxWeight    = 10000
	weightsAbove = maxWeight - 1         // the weights above the minimum, 1
	sharesAbove  = maxShares - MinShares // the shares above the minimum
)

// Weight returns the CPU weight of cgroup v2, 1 to 10000, for a number of CPU shares,
// which is clamped to the valid range. It is linear, as the kubelet's: a weight counts
// among the siblings of a cgroup, so that pods and QoS classes share CPU time in the ratio
// of their requests. OCI runtimes convert the shares of containers themselves; the cgroups
// of containers are siblings of each other only.
func Weight(shares int64) int64 {
	return 1 + (min(max(shares, MinShares), maxShares)-MinShares)*weightsAbove/sharesAbove
}

// MaxSharesOfWeight returns the largest number of CPU shares for which Weight returns
// weight.
func MaxSharesOfWeight(weight int64) int64 {
	weight = min(max(weight, 1), maxWeight)
	return min(MinShares+(weight*sharesAbove-1)/weightsAbove, maxShares)
}
