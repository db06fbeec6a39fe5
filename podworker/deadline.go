package podworker

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Reason and message of a pod that exceeded its deadline (rule sl-62).
const (
	deadlineReason  = "DeadlineExceeded"
	deadlineMessage = "Pod was active on the node longer than the specified deadline"
)

// pastDeadline reports whether the pod has exceeded its activeDeadlineSeconds, and the time of
// the deadline; zero if it has none.
func pastDeadline(pod *v1.Pod, status v1.PodStatus, now time.Time) (late bool, at time.Time) {
	if pod.Spec.ActiveDeadlineSeconds == nil || status.StartTime == nil {
		return false, time.Time{}
	}
	at = status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	return !now.Before(at), at
}

// earlier returns the earlier of two times. Zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
