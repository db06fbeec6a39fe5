package podspec

import "k8s.io/apimachinery/pkg/api/resource"

// The smallest amounts of CPU, in milli-CPUs, that the kernel can represent: 2 CPU
// shares and a quota of 1 ms per 100 ms. Smaller requests and limits are rounded up to
// them, so a reported amount at or below them may stand for any smaller one (#123441).
const (
	MinCPURequest = 2
	MinCPULimit   = 10
)

// MilliCPU returns an amount of CPU in milli-CPUs: 0 if it is negative, and at most
// 2^40, which is more than any machine has and does not overflow in conversions.
func MilliCPU(cpu resource.Quantity) int64 {
	const most = 1 << 40
	switch {
	case cpu.Sign() <= 0:
		return 0
	case cpu.Value() > most/1000: // MilliValue overflows
		return most
	}
	return cpu.MilliValue()
}
