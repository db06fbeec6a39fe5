package lab

import (
	"os"
	"strconv"
	"time"
)

// Limit returns a time limit for this machine: d, which is for a machine of the usual speed, multiplied by the number
// in KUBEPARTS_SLOWNESS, such as 10 in an emulated machine.
func Limit(d time.Duration) time.Duration {
	slowness, err := strconv.ParseFloat(os.Getenv("KUBEPARTS_SLOWNESS"), 64)
	if err != nil || slowness < 1 {
		return d
	}
	return time.Duration(float64(d) * slowness)
}
