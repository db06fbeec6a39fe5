package prober

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A Timing is when a probe runs, and how often it has to say the same thing. The
// API counts in whole seconds; this does not (F-04).
type Timing struct {
	// InitialDelay from the start of the container to the first run.
	InitialDelay time.Duration

	// Period from one run to the next.
	Period time.Duration

	// Timeout of one run.
	Timeout time.Duration

	// SuccessThreshold and FailureThreshold are how many runs in a row have to
	// end alike before that is the result.
	SuccessThreshold, FailureThreshold int
}

// TimingOf returns what the API says of p. Where p says nothing, the API's
// defaults hold: a period of 10 s, a timeout of 1 s, one success, three
// failures.
func TimingOf(p *v1.Probe) Timing {
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
