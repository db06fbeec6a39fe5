package status

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Summary returns a status in one line:
//
//	Running ready=1/1 restarts=0 ip=10.0.0.7
//	Failed (Evicted: The node was low on resource: memory.) ready=0/1 restarts=2
//
// Ready counts regular containers, restarts those of init containers too.
func Summary(s *v1.PodStatus) string {
	var b strings.Builder
	phase := s.Phase
	if phase == "" {
		phase = "Unknown"
	}
	b.WriteString(string(phase))
	if why := joinReason(s.Reason, s.Message); why != "" {
		fmt.Fprintf(&b, " (%s)", why)
	}
	ready, all, restarts := 0, 0, int32(0)
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		all++
		restarts += c.RestartCount
		if c.Ready {
			ready++
		}
	}
	for i := range s.InitContainerStatuses {
		restarts += s.InitContainerStatuses[i].RestartCount
	}
	fmt.Fprintf(&b, " ready=%d/%d restarts=%d", ready, all, restarts)
	if s.PodIP != "" {
		b.WriteString(" ip=" + s.PodIP)
	}
	return b.String()
}

// Describe puts the change from old to new in words: one line per container
// that does something else now, then the summary if that differs. The zero
// status stands for a pod that nothing was said of. No line names the pod.
func Describe(old, new *v1.PodStatus) []string {
	var lines []string
	for _, part := range []struct {
		kind     string
		old, new []v1.ContainerStatus
	}{
		{"init container", old.InitContainerStatuses, new.InitContainerStatuses},
		{"container", old.ContainerStatuses, new.ContainerStatuses},
		{"ephemeral container", old.EphemeralContainerStatuses, new.EphemeralContainerStatuses},
	} {
		for i := range part.new {
			c := &part.new[i]
			if what := describeContainer(find(part.old, c.Name), c); what != "" {
				lines = append(lines, part.kind+" "+c.Name+" "+what)
			}
		}
	}
	if now := Summary(new); now != Summary(old) {
		lines = append(lines, now)
	}
	return lines
}

// describe says what a container does now that it did not before, or "". That
// a container waits for its first start is not worth a line; a reason that
// keeps it from starting is.
func describeContainer(old, c *v1.ContainerStatus) string {
	var was v1.ContainerState
	if old != nil {
		was = old.State
	}
	switch now := c.State; {
	case now.Running != nil:
		if was.Running != nil && old.ContainerID == c.ContainerID {
			return readinessChange(old, c)
		}
		verb := "started"
		if old == nil {
			verb = "runs" // since before anything was said of it: an earlier agent started it
		} else if c.RestartCount > 0 {
			verb = "started again"
		}
		if c.RestartCount > 0 {
			return fmt.Sprintf("%s (restart %d)", verb, c.RestartCount)
		}
		return verb
	case now.Terminated != nil:
		if shows(old, now.Terminated) && (was.Terminated == nil || was.Terminated.Reason == now.Terminated.Reason) {
			return "" // told before, perhaps as the exit it waited after
		}
		return formatExit(now.Terminated)
	case now.Waiting != nil:
		return describeWaiting(old, c, &was)
	}
	return ""
}

func describeWaiting(old, c *v1.ContainerStatus, was *v1.ContainerState) string {
	w := c.State.Waiting
	same := was.Waiting != nil && was.Waiting.Reason == w.Reason
	exit := ""
	if len(newExits(old, c)) > 0 || was.Terminated != nil {
		if t := c.LastTerminationState.Terminated; t != nil {
			exit, same = formatExit(t)+", ", false
		}
	}
	switch {
	case same || exit == "" && startPending(w.Reason):
		return ""
	case w.Reason == "":
		return strings.TrimSuffix(exit, ", ")
	}
	if d, ok := backOff(w.Message); ok && w.Reason == "CrashLoopBackOff" {
		return fmt.Sprintf("%srestarting in %v (%s)", exit, d, w.Reason)
	}
	return exit + "waiting: " + joinReason(w.Reason, w.Message)
}

// notYet reports whether a reason says no more than that the turn of the
// container has not come.
func startPending(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// readinessChange says that a running container became ready, or unready.
func readinessChange(old, c *v1.ContainerStatus) string {
	switch {
	case old.Ready == c.Ready:
		return ""
	case c.Ready:
		return "is ready"
	default:
		return "is not ready"
	}
}

// exited says how a container ended: exited(1) Error: out of cheese. The usual
// reasons say no more than the code.
func formatExit(t *v1.ContainerStateTerminated) string {
	s := fmt.Sprintf("exited(%d)", t.ExitCode)
	reason := t.Reason
	if reason == "Error" || reason == "Completed" {
		reason = ""
	}
	if why := joinReason(reason, t.Message); why != "" {
		s += " " + why
	}
	return s
}

// because joins a reason and the first line of its message.
func joinReason(reason, message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	message = head(message, 200)
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// backOff reads the wait out of the message of a crash loop: "back-off 20s
// restarting failed container=…".
func backOff(message string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(message, "back-off ")
	if !ok {
		return 0, false
	}
	word, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(word)
	return d, err == nil
}
