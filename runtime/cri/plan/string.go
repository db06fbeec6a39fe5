package plan

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// String returns one line of text for each step with its reason, in the order of the steps.
// The text is for logs and status pages and may change.
func (p Plan) String() string {
	var lines []string
	printf := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if p.KillPod {
		printf("stop the pod: %s", p.killText())
	}
	for _, k := range p.Kill {
		printf("stop %s %s (%s): %s", k.Kind, k.Name, k.ID, k.Message)
	}
	for _, r := range p.Remove {
		printf("%s", r)
	}
	switch {
	case p.Restore != "" && p.CreateSandbox:
		printf("restore a sandbox and its containers from %s, attempt %d", p.Restore, p.Attempt)
	case p.Restore != "":
		printf("continue to restore the pod from %s", p.Restore)
	case p.CreateSandbox:
		printf("create a sandbox, attempt %d", p.Attempt)
	}
	for i := range p.Start {
		if p.Start[i].Kind != Regular {
			printf("%s", p.Start[i])
		}
	}
	if p.ResizePod != nil {
		printf("resize the pod: %s", p.ResizePod.Why)
	}
	for i := range p.Resize {
		printf("%s", p.Resize[i])
	}
	for i := range p.Start {
		if p.Start[i].Kind == Regular {
			printf("%s", p.Start[i])
		}
	}
	switch {
	case p.Waits != "":
		printf("wait for %s", p.Waits)
	case len(lines) == 0 && p.Changed != "":
		printf("nothing to do: %s; the pod will not restart", p.Changed)
	case len(lines) == 0:
		printf("nothing to do")
	}
	return strings.Join(lines, "\n")
}

// String returns the removal as one line of text.
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

// killText returns the reason for stopping the pod as text.
func (p Plan) killText() string {
	switch {
	case p.KillReason == KillInitFailed:
		return "an init container failed and will not restart"
	case p.KillReason == KillCompleted:
		return "all containers have terminated"
	case p.Changed == "":
		return "its containers have no sandbox"
	case p.CreateSandbox:
		return p.Changed
	default:
		return p.Changed + "; the pod will not restart"
	}
}

// String returns the start as one line of text.
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

// BackoffMessage returns the message of the waiting reason CrashLoopBackOff for a start in
// back-off (rule rt-90).
func (s Start) BackoffMessage(pod *v1.Pod) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", s.Delay, s.Name, podName(pod))
}

// BackoffEvent returns the message of the event BackOff for a start in back-off.
func (s Start) BackoffEvent(pod *v1.Pod) string {
	return fmt.Sprintf("Back-off restarting failed container %s in pod %s", s.Name, podName(pod))
}

// podName returns the pod's name in the kubelet's messages.
func podName(pod *v1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}

// unknownStateMessage returns the message of a kill for an unknown state.
func unknownStateMessage(kind Kind, state runtime.ContainerState) string {
	label := "Container"
	if kind == Init {
		label = "Init container"
	}
	return fmt.Sprintf("%s is in %q state, try killing it before restart", label, state)
}

// startText returns the reason of s as text.
func (c *computation) startText(s *Start, h history) string {
	switch s.Reason {
	case StartNew:
		return "it has not run yet"
	case StartNewSandbox:
		return "it has not run in this sandbox yet"
	case StartCreated:
		if s.Resume == "" {
			return "an instance of an earlier start was created and never started"
		}
		return "it was created and never started"
	case StartDefinitionChanged:
		return "its definition changed"
	case StartLivenessProbe:
		return "it failed its liveness probe"
	case StartStartupProbe:
		return "it failed its startup probe"
	case StartResize:
		return "its new resources require a restart"
	case StartUnknownState:
		return "its state is unknown"
	case StartRestored:
		return "its process continues from the checkpoint"
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
