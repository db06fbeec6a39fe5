package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A line of a timeline.
type line struct {
	at   time.Duration
	text string
}

// timeline returns what happened as lines, in order of time: steps, changes of the runtime, failed calls, statuses
// that differ from the one before, and violations.
func timeline(run *Recording, violations []Violation) (out []line) {
	names := podsOf(run)
	last := map[types.UID]string{}
	add := func(at time.Duration, kind, format string, args ...any) {
		out = append(out, line{at, fmt.Sprintf("%7.1fs  %-8s %s", at.Seconds(), kind, fmt.Sprintf(format, args...))})
	}
	for _, r := range run.Records {
		switch {
		case r.Step != nil:
			_, text, _ := strings.Cut(*r.Step, " ")
			add(r.At, "step", "%s", text)
		case r.Agent != nil:
			add(r.At, "kubelet", "%s", r.Agent.What)
		case r.Mark != nil:
			add(r.At, "mark", "%s", *r.Mark)
		case r.Change != nil:
			add(r.At, "runtime", "%s", changeText(names, r.Change))
		case r.Call != nil && (r.Call.Err != "" || r.Call.Exit != 0 || r.Call.Method == "StopContainer"):
			add(r.At, "call", "%s", callText(names, r.Call))
		case r.Pod != nil:
			text := statusText(r.Pod)
			if last[r.Pod.Pod.UID] != text {
				last[r.Pod.Pod.UID] = text
				add(r.At, "status", "%s: %s", r.Pod.Pod.Name, text)
			}
		}
	}
	for _, v := range violations {
		add(v.At, "VIOLATED", "%s: %s: %s", v.Pod, v.Invariant, v.Message)
	}
	slices.SortStableFunc(out, func(a, b line) int { return int(a.at - b.at) })
	return out
}

// podsOf returns the names of all pods by UID.
func podsOf(run *Recording) map[types.UID]string {
	names := map[types.UID]string{}
	for _, r := range run.Records {
		if r.Pod != nil {
			names[r.Pod.Pod.UID] = r.Pod.Pod.Name
		}
	}
	return names
}

func changeText(names map[types.UID]string, c *Change) string {
	what := names[c.Pod] + " sandbox"
	if c.Container != "" {
		what = names[c.Pod] + "/" + c.Container
	}
	text := fmt.Sprintf("%s #%d %s: %s", what, c.Attempt, short(c.ID), c.To)
	if c.To == "exited" {
		text += fmt.Sprintf(" %d %s", c.ExitCode, c.Reason)
		if c.Stopped {
			text += ", stopped"
		}
	}
	return text
}

func callText(names map[types.UID]string, c *Call) string {
	what := names[c.Pod]
	if c.Container != "" {
		what += "/" + c.Container
	}
	text := fmt.Sprintf("%s %s", c.Method, what)
	if c.Method == "StopContainer" {
		text += fmt.Sprintf(" timeout=%ds", c.Timeout)
	}
	if len(c.Command) > 0 {
		text += fmt.Sprintf(" %s: exit code %d", strings.Join(c.Command, " "), c.Exit)
	}
	if c.Err != "" {
		text += fmt.Sprintf(": %s (after %v)", c.Err, c.Took.Round(time.Millisecond))
	}
	return text
}

// statusText describes a version of a pod.
func statusText(v *Version) string {
	pod := v.Pod
	words := []string{string(pod.Status.Phase)}
	if v.Deleted {
		return "deleted from the API server"
	}
	if pod.Status.Reason != "" {
		words = append(words, pod.Status.Reason)
	}
	if pod.DeletionTimestamp != nil {
		words = append(words, fmt.Sprintf("deleting(%ds)", *pod.DeletionGracePeriodSeconds))
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == v1.ConditionTrue && (c.Type == v1.PodReady || c.Type == v1.PodInitialized) {
			words = append(words, string(c.Type))
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		state := "none"
		switch {
		case c.State.Running != nil:
			state = "running"
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			state = fmt.Sprintf("exited(%d %s)", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
		}
		words = append(words, fmt.Sprintf("%s#%d=%s", c.Name, c.RestartCount, state))
	}
	return strings.Join(words, " ")
}
