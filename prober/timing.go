package prober

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A Timing has the times and thresholds of a probe. Unlike in the API, times may be fractions
// of a second.
type Timing struct {
	// InitialDelay between the start of the container and the first attempt.
	InitialDelay time.Duration

	// Period between attempts.
	Period time.Duration

	// Timeout of an attempt.
	Timeout time.Duration

	// SuccessThreshold and FailureThreshold are the numbers of consecutive equal outcomes
	// that make a result.
	SuccessThreshold, FailureThreshold int
}

// timingOf returns the timing of p. Unset fields have the API's defaults: a period of 10 s, a
// timeout of 1 s, one success, three failures.
func timingOf(p *v1.Probe) Timing {
	return Timing{
		InitialDelay: time.Duration(p.InitialDelaySeconds) * time.Second,
		Period:       time.Duration(p.PeriodSeconds) * time.Second,
		Timeout:      time.Duration(p.TimeoutSeconds) * time.Second,

		SuccessThreshold: int(p.SuccessThreshold),
		FailureThreshold: int(p.FailureThreshold),
	}.defaults()
}

func (t Timing) defaults() Timing {
	return Timing{
		InitialDelay:     max(t.InitialDelay, 0),
		Period:           cmp.Or(max(t.Period, 0), 10*time.Second),
		Timeout:          cmp.Or(max(t.Timeout, 0), time.Second),
		SuccessThreshold: cmp.Or(max(t.SuccessThreshold, 0), 1),
		FailureThreshold: cmp.Or(max(t.FailureThreshold, 0), 3),
	}
}
