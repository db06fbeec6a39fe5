package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

// A stopLimit decides when an agent that stops all pods gives up, so that a runtime
// that is gone or hangs does not keep the process, and its ports, forever.
type stopLimit struct {
	progress time.Time     // when a pod stopped last, or stopping began
	left     int           // pods that have not stopped
	grace    time.Duration // the longest of their grace periods
	down     time.Time     // since when the runtime has not answered; zero if it answers
	downErr  error         // why it does not
}

// observe records whether the runtime answers; err is nil if it does.
func (l *stopLimit) observe(now time.Time, err error) {
	switch {
	case err == nil:
		l.down = time.Time{}
	case l.down.IsZero():
		l.down = now
	}
	l.downErr = err
}

// exceeded returns an error if the agent has to stop without the pods that are left.
func (l *stopLimit) exceeded(now time.Time) error {
	switch idle := now.Sub(l.progress); {
	case !l.down.IsZero() && now.Sub(l.down) >= stopSlack:
		return fmt.Errorf("stop pods: %d are left running: %w", l.left, l.downErr)
	case idle >= l.grace+stopSlack:
		return fmt.Errorf("stop pods: %d are left: none stopped in %v, with a grace period of %v", l.left, idle.Round(time.Second), l.grace)
	}
	return nil
}

// longestGrace returns the longest grace period of the pods.
func longestGrace(pods []podworker.PodState) (longest time.Duration) {
	for _, s := range pods {
		seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
		switch {
		case s.GracePeriodSeconds != nil:
			seconds = *s.GracePeriodSeconds
		case s.Pod != nil && s.Pod.Spec.TerminationGracePeriodSeconds != nil:
			seconds = *s.Pod.Spec.TerminationGracePeriodSeconds
		}
		longest = max(longest, time.Duration(min(seconds, maxGraceSeconds))*time.Second)
	}
	return longest
}

// maxGraceSeconds keeps the sums of grace periods below the range of a time.Duration.
const maxGraceSeconds = 1 << 32
