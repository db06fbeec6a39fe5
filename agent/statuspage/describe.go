package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/podworker"
)

// describe returns the state of a pod's worker, its termination, the next step with its cause
// of delay, and the next retry: "syncing for 1m40s. Next step: mount volumes (waiting 1m40s):
// secret "conf" not found; retry in 12s."
func describe(s podworker.Snapshot) string {
	text := fmt.Sprintf("%v for %v.", s.State, elapsed(s, s.Since))
	if s.Termination != nil {
		text += " " + describeTermination(s) + "."
	}
	if next := describeNext(s); next != "" {
		text += " " + next + "."
	}
	if s.Restart {
		text += " The pod was added again and starts when it has finished."
	}
	return text
}

func describeNext(s podworker.Snapshot) string {
	var text string
	switch {
	case s.Step != "":
		text = fmt.Sprintf("Next step: %s (waiting %v)", s.Step, elapsed(s, s.StepSince))
		for i, uid := range s.BlockedBy {
			text += []string{" ", ", "}[min(i, 1)] + string(uid)
		}
	case s.Err != "" && s.Failures > 1:
		text = fmt.Sprintf("The last %d attempts failed", s.Failures)
	case s.Err != "":
		text = "The last attempt failed"
	case !s.Next.IsZero():
		return fmt.Sprintf("Next sync in %v", until(s, s.Next))
	default:
		return ""
	}
	if s.Err != "" {
		text += ": " + strings.TrimSuffix(s.Err, ".")
	}
	if s.Next.After(s.At) {
		text += fmt.Sprintf("; retry in %v", until(s, s.Next))
	}
	return text
}

func describeTermination(s podworker.Snapshot) string {
	t := s.Termination
	text := fmt.Sprintf("Termination requested %v ago (%s)", elapsed(s, t.At), t.Cause)
	if t.Reason != "" {
		text += ": " + t.Reason + ": " + strings.TrimSuffix(t.Message, ".")
	}
	if t.GracePeriodSeconds != nil && s.State < podworker.Cleaning {
		text += fmt.Sprintf("; grace period %d s", *t.GracePeriodSeconds)
	}
	return text
}

func elapsed(s podworker.Snapshot, t time.Time) time.Duration { return round(s.At.Sub(t)) }

func until(s podworker.Snapshot, t time.Time) time.Duration { return round(max(t.Sub(s.At), 0)) }

// round rounds to seconds from 10 seconds on, and to milliseconds below.
func round(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
