package podworker

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// What a pod's status and event say when its time is up (sl-62).
const (
	deadlineReason  = "DeadlineExceeded"
	deadlineMessage = "Pod was active on the node longer than the specified deadline"
)

// pastDeadline reports whether the pod has used up its activeDeadlineSeconds,
// and if not, when it will have (zero: never).
func pastDeadline(pod *v1.Pod, status v1.PodStatus, now time.Time) (late bool, at time.Time) {
	if pod.Spec.ActiveDeadlineSeconds == nil || status.StartTime == nil {
		return false, time.Time{}
	}
	at = status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	return !now.Before(at), at
}

// earlier returns the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
