package prober

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Hooks are told what a Manager does, for metrics. Each may be nil. They are
// called without locks held, from several goroutines, and must not block.
type Hooks struct {
	// Ran is called when a run of a probe has ended. The kubelet's
	// prober_probe_total counts those without an error, as "successful" or
	// "failed" (prober-26), and its prober_probe_duration_seconds takes the
	// Duration of the successful (prober-27).
	Ran func(AttemptInfo)

	// Deferred is called when a run that is due has to wait, because as many
	// probes run as may: prober_deferred_total (F-05).
	Deferred func(DeferInfo)

	// Removed is called when a probe is no more, and so are the series of
	// metrics that it had (prober-9).
	Removed func(pod *v1.Pod, container string, kind Kind)
}

// A RunInfo tells of one run of a probe.
type AttemptInfo struct {
	Pod       *v1.Pod // may not be changed
	Container string
	Kind      Kind
	Result    runtime.ProbeResult // ProbeUnknown if there is an error
	Err       error               // it could not be carried out
	Duration  time.Duration

	// Lag is how long after it was due it began.
	Lag time.Duration
}

// A DeferInfo tells of a run that has to wait.
type DeferInfo struct {
	Pod       *v1.Pod // may not be changed
	Container string
	Kind      Kind
	Exec      bool // for the budget of exec probes
}
