package shutdown

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Hooks are called as things happen; they must not block. Any may be nil. Killed may
// be called from several goroutines at once.
type Hooks struct {
	// Times is called when a shutdown begins, with a zero end, and when all pods have
	// ended; first, with those of the last shutdown, if there is a record of it
	// (kubelet_graceful_shutdown_start_time_seconds, …_end_time_seconds; sh-11).
	Times func(start, end time.Time)

	// Killed is called for each pod.
	Killed func(KilledInfo)

	// GroupEnded is called for each group that had pods.
	GroupEnded func(GroupInfo)

	// Ended is called when all is done, just before the machine may stop.
	Ended func(EndedInfo)

	// WatchFailed is called when a trigger can learn nothing for now.
	WatchFailed func(error)
}

// KilledInfo tells of a pod that was ended. Err: it has not ended in time.
type KilledInfo struct {
	Pod                *v1.Pod
	GracePeriodSeconds int64
	Took               time.Duration
	Err                error
}

// GroupInfo tells of a group that had its time: how many pods it had, and of how many
// something was left.
type GroupInfo struct {
	Group
	Pods, Left int
	Took       time.Duration
}

// EndedInfo tells of a shutdown that was carried out. FlushErr: last statuses were not
// recorded in time.
type EndedInfo struct {
	Pods     int
	Took     time.Duration
	FlushErr error
}

func (h *Hooks) fill() {
	if h.Times == nil {
		h.Times = func(time.Time, time.Time) {}
	}
	if h.Killed == nil {
		h.Killed = func(KilledInfo) {}
	}
	if h.GroupEnded == nil {
		h.GroupEnded = func(GroupInfo) {}
	}
	if h.Ended == nil {
		h.Ended = func(EndedInfo) {}
	}
	if h.WatchFailed == nil {
		h.WatchFailed = func(error) {}
	}
}
