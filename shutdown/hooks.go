package shutdown

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks are called as a [Manager] works; they must not block. Any may be nil. Killed may be
// called from several goroutines.
type Hooks struct {
	// Times is called when a shutdown starts, with a zero end, and when all pods have
	// terminated; and at the start of Run with the times of the last shutdown, if there is a
	// checkpoint (kubelet_graceful_shutdown_start_time_seconds, …_end_time_seconds).
	Times func(start, end time.Time)

	// Killed is called for each pod after its kill.
	Killed func(KilledInfo)

	// Ended is called at the end of a shutdown, before the machine is released.
	Ended func(EndedInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add2(&h.Times, o.Times)
		compose.Add(&h.Killed, o.Killed)
		compose.Add(&h.Ended, o.Ended)
	}
	return h
}

// KilledInfo describes the kill of a pod. Err is not nil if the pod has not terminated in time.
type KilledInfo struct {
	Pod                *v1.Pod
	GracePeriodSeconds int64
	Duration           time.Duration
	Err                error
}

// EndedInfo describes a completed shutdown. FlushErr is not nil if final statuses were not
// recorded in time.
type EndedInfo struct {
	Pods     int
	Duration time.Duration
	FlushErr error
}

func (h *Hooks) setDefaults() {
	if h.Times == nil {
		h.Times = func(time.Time, time.Time) {}
	}
	if h.Killed == nil {
		h.Killed = func(KilledInfo) {}
	}
	if h.Ended == nil {
		h.Ended = func(EndedInfo) {}
	}
}
