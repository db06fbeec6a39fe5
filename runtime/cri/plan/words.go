package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// String returns the plan in words: one line per step with its reason, in the
// order of the steps. Words are for people and may change.
func (p Plan) String() string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if p.KillPod {
		say("stop the pod: %s", p.killWhy())
	}
	for _, k := range p.Kill {
		say("stop %s %s (%s): %s", k.Kind, k.Name, k.ID, k.Message)
	}
	for _, r := range p.Remove {
		say("%s", r)
	}
	if p.CreateSandbox {
		say("create a sandbox, attempt %d", p.Attempt)
	}
	for i := range p.Start {
		if p.Start[i].Kind != Regular {
			say("%s", p.Start[i])
		}
	}
	if p.ResizePod != nil {
		say("resize the pod: %s", p.ResizePod.Why)
	}
	for i := range p.Resize {
		say("%s", p.Resize[i])
	}
	for i := range p.Start {
		if p.Start[i].Kind == Regular {
			say("%s", p.Start[i])
		}
	}
	switch {
	case p.Waits != "":
		say("wait for %s", p.Waits)
	case len(lines) == 0 && p.Changed != "":
		say("nothing to do: %s, and the pod is not to run again", p.Changed)
	case len(lines) == 0:
		say("nothing to do")
	}
	return strings.Join(lines, "\n")
}

// Diff returns what the plan new says other than old, line by line: "- " before
// what is no more, "+ " before what is new. "": they say the same.
func Diff(old, new Plan) string {
	a, b := strings.Split(old.String(), "\n"), strings.Split(new.String(), "\n")
	var lines []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}

// String returns the removal in words.
func (r Removal) String() string {
	how := "remove"
	if r.Running {
		how = "stop and remove"
	}
	why := "all containers are restarted"
	if r.Trigger {
		why = "its exit restarts all containers"
	}
	return fmt.Sprintf("%s %s %s (%s): %s", how, r.Kind, r.Name, r.ID, why)
}

// killWhy says why the pod is stopped.
func (p Plan) killWhy() string {
	switch {
	case p.KillReason == KillInitFailed:
		return "an init container failed for good"
	case p.KillReason == KillCompleted:
		return "none of its containers runs or is to run again"
	case p.Changed == "":
		return "its containers have no sandbox"
	case p.CreateSandbox:
		return p.Changed
	default:
		return p.Changed + ", and the pod is not to run again"
	}
}

// String returns the start in words.
func (s Start) String() string {
	verb := "start"
	if s.Resume != "" {
		verb = "resume"
	}
	text := fmt.Sprintf("%s %s %s", verb, s.Kind, s.Name)
	if s.RestartCount > 0 {
		text += fmt.Sprintf(", restart %d", s.RestartCount)
	}
	text += ": " + s.Why
	if s.InBackoff() {
		text += fmt.Sprintf("; not before %s (back-off %s)", s.NotBefore.UTC().Format(time.RFC3339), s.Delay)
	}
	return text
}

// BackoffMessage returns the message of the waiting reason CrashLoopBackOff of
// a container of pod that is put off (rt-90).
func (s Start) BackoffMessage(pod *v1.Pod) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", s.Delay, s.Name, podName(pod))
}

// BackoffEvent returns the message of the event BackOff that goes with it
// (rt-90).
func (s Start) BackoffEvent(pod *v1.Pod) string {
	return fmt.Sprintf("Back-off restarting failed container %s in pod %s", s.Name, podName(pod))
}

// podName returns the name under which people find the pod in messages.
func podName(pod *v1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}

// unknownStateMessage returns the message of a kill for an unknown state
// (rt-47).
func unknownStateMessage(kind Kind, state runtime.ContainerState) string {
	what := "Container"
	if kind == Init {
		what = "Init container"
	}
	return fmt.Sprintf("%s is in %q state, try killing it before restart", what, state)
}

// why returns the reason of s in words.
func (c *computation) why(s *Start, h history) string {
	switch s.Reason {
	case StartNew:
		return "it has not run yet"
	case StartNewSandbox:
		return "it has not run in this sandbox yet"
	case StartCreated:
		if s.Resume == "" {
			return "an instance was created and never started, but for another start"
		}
		return "it was created and never started"
	case StartDefinitionChanged:
		return "its definition changed"
	case StartLivenessProbe:
		return "it failed its liveness probe"
	case StartStartupProbe:
		return "it failed its startup probe"
	case StartResize:
		return "its new resources want a restart"
	case StartUnknownState:
		return "nobody knows what became of it"
	case StartExited:
		policy := fmt.Sprintf("restart policy %s", podspec.RestartPolicy(c.Pod, s.Container))
		if len(s.Container.RestartPolicyRules) > 0 {
			policy += " with rules"
		}
		return fmt.Sprintf("it exited with %d, %s", h.counts.ExitCode, policy)
	default:
		return s.Reason
	}
}
