package qos

import "k8s.io/apimachinery/pkg/api/resource"

// What the kernel cannot hold less of, in milli-CPUs: 2 shares, and a quota of
// 1 ms in 100 ms. What asks for less has this much, so that a figure at or below
// it says nothing of what was asked for (#123441).
const (
	MinCPURequest = 2
	MinCPULimit   = 10
)

// CPUShares turns a CPU request into cgroup v1 shares, 2 … 262144 (cm-1).
func CPUShares(cpu resource.Quantity) int64 { return min(max(scale(cpu, 1024), 2), 262144) }

// CPUQuota turns a CPU limit into microseconds of CPU time in a period of so
// many, at least 1000 (cm-2).
func CPUQuota(cpu resource.Quantity, period int64) int64 { return max(scale(cpu, period), 1000) }

// scale returns what of units per CPU the quantity is. Amounts beyond any
// machine do not overflow.
func scale(cpu resource.Quantity, units int64) int64 {
	const most = 1 << 40 // milli-CPUs
	switch {
	case cpu.Sign() <= 0:
		return 0
	case cpu.Value() > most/1000: // MilliValue overflows
		return most * units / 1000
	}
	return cpu.MilliValue() * units / 1000
}
