package metrics

import "time"

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// number is a truth as Prometheus has it.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
