package prober

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Hooks are called as a [Manager] works, for metrics. Any may be nil. They are called without
// locks held, from several goroutines, and must not block or modify the pod.
type Hooks struct {
	// Ran is called after each attempt of a probe. The kubelet's prober_probe_total counts
	// those without an error, as "successful" or "failed", and its
	// prober_probe_duration_seconds observes the Duration of successful ones.
	Ran func(AttemptInfo)

	// Deferred is called when an attempt is delayed by Config.Limits
	// (prober_deferred_total).
	Deferred func(pod *v1.Pod, container string, kind Kind)

	// Removed is called when a probe has ended; its metric series should be deleted.
	Removed func(pod *v1.Pod, container string, kind Kind)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Ran, o.Ran)
		compose.Add3(&h.Deferred, o.Deferred)
		compose.Add3(&h.Removed, o.Removed)
	}
	return h
}

// AttemptInfo describes one attempt of a probe.
type AttemptInfo struct {
	Pod       *v1.Pod // must not be modified
	Container string
	Kind      Kind
	Result    runtime.ProbeResult // ProbeUnknown if there is an error
	Err       error               // the attempt could not be carried out
	Duration  time.Duration

	// Lag is the delay between the scheduled time and the start.
	Lag time.Duration
}
