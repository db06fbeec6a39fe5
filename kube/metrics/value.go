package metrics

import "time"

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// unix is that of a time that may not be known: 0 then.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return seconds(t)
}

// number is a truth as Prometheus has it.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
