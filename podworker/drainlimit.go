package podworker

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// drainSlack is how long Drain waits for a runtime that is down, and for a pod to
// terminate beyond its grace period.
const drainSlack = 30 * time.Second

// A drainLimit decides when Drain gives up, so that a runtime that does not respond
// does not block it forever. Its zero value is the state before Drain.
type drainLimit struct {
	left     int           // pods that have not finished
	progress time.Time     // when left changed last
	grace    time.Duration // the longest grace period of a pod that is left
	down     time.Time     // since when the runtime has been down; zero if it is not
	downErr  error
}

// observe records how many pods are left, the longest of their grace periods, and why
// the runtime is down, nil if it is not.
func (l *drainLimit) observe(now time.Time, left int, grace time.Duration, down error) {
	if left != l.left || l.progress.IsZero() {
		l.left, l.progress = left, now
	}
	switch {
	case down == nil:
		l.down = time.Time{}
	case l.down.IsZero():
		l.down = now
	}
	l.grace, l.downErr = grace, down
}

// exceeded returns an error if Drain has to return without the pods that are left.
func (l *drainLimit) exceeded(now time.Time) error {
	switch idle := now.Sub(l.progress); {
	case !l.down.IsZero() && now.Sub(l.down) >= drainSlack:
		return fmt.Errorf("%d pods left: %w", l.left, l.downErr)
	case idle >= l.grace+drainSlack:
		return fmt.Errorf("%d pods left: none terminated in %v, with a grace period of %v", l.left, idle.Round(time.Second), l.grace)
	}
	return nil
}

// maxGraceSeconds keeps sums of grace periods in the range of a time.Duration.
const maxGraceSeconds = 1 << 32

// gracePeriod returns the grace period of a pod: override, or that of its spec. For
// an orphan, whose spec is not known, it is the default of Kubernetes.
func gracePeriod(pod *v1.Pod, override *int64) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	switch {
	case override != nil:
		seconds = *override
	case pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(min(seconds, maxGraceSeconds)) * time.Second
}
