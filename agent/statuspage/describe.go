package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/podworker"
)

// describe explains the state of a pod to an operator: the cause of a problem and the next retry
// first, then what happens to the pod: "Failing to mount volumes for 1m40s: secret "conf" not found;
// retry in 12s."
func describe(s podworker.Snapshot) string {
	var all []string
	add := func(sentence string) {
		if sentence != "" {
			all = append(all, strings.TrimSuffix(sentence, ".")+".")
		}
	}
	cause := describeCause(s)
	add(cause)
	add(describeState(s, cause == ""))
	if s.Termination != nil {
		add(describeTermination(s))
	}
	if s.Restart {
		add("The pod was added again and starts when it has terminated")
	}
	return strings.Join(all, " ")
}

// describeCause returns the error or the step in progress, or the reason of the termination.
func describeCause(s podworker.Snapshot) string {
	var text string
	wait, waits := strings.CutPrefix(s.Step, "wait ")
	switch {
	case waits:
		text = fmt.Sprintf("Waiting %s for %v", wait, elapsed(s, s.StepSince))
	case s.Step != "" && s.Err != "":
		text = fmt.Sprintf("Failing to %s for %v", s.Step, elapsed(s, s.StepSince))
	case s.Step != "":
		text = fmt.Sprintf("In progress for %v: %s", elapsed(s, s.StepSince), s.Step)
	case s.Err != "" && s.Failures > 1:
		text = fmt.Sprintf("The last %d attempts failed", s.Failures)
	case s.Err != "":
		text = "The last attempt failed"
	case s.Termination != nil && s.Termination.Reason != "":
		return s.Termination.Reason + ": " + s.Termination.Message
	default:
		return ""
	}
	for i, uid := range s.BlockedBy {
		text += []string{": ", ", "}[min(i, 1)] + string(uid)
	}
	if s.Err != "" {
		text += ": " + strings.TrimSuffix(s.Err, ".")
	}
	if s.Next.After(s.At) {
		text += fmt.Sprintf("; retry in %v", until(s, s.Next))
	}
	return text
}

// describeState returns what happens to the pod. well: there is no cause to report.
func describeState(s podworker.Snapshot, well bool) string {
	lasts := elapsed(s, s.Since)
	switch s.State {
	case podworker.Waiting:
		return fmt.Sprintf("The pod has not been started for %v", lasts)
	case podworker.Syncing:
		switch {
		case !well:
			return ""
		case s.Next.After(s.At):
			return fmt.Sprintf("The pod is up to date; next check in %v", until(s, s.Next))
		}
		return "The pod is up to date"
	case podworker.Terminating:
		return fmt.Sprintf("The containers of the pod have been stopping for %v", lasts)
	case podworker.Cleaning:
		return fmt.Sprintf("The containers have stopped; releasing the resources of the pod for %v", lasts)
	case podworker.Finished:
		return fmt.Sprintf("The pod terminated %v ago", lasts)
	}
	return ""
}

func describeTermination(s podworker.Snapshot) string {
	t := s.Termination
	text := fmt.Sprintf("Termination requested %v ago (%s)", elapsed(s, t.At), t.Cause)
	if t.Reason != "" && (s.Err != "" || s.Step != "") {
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
