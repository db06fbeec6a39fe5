package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// differences returns a line for each difference from the desired state, none if the node
// has recovered. desired are the names of the desired pods.
func (w *world) differences(ctx context.Context, desired []string) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if _, err := w.agent.get(ctx, "/healthz"); err != nil {
		add("%v", err)
	}
	if err := w.nodeReady(ctx); err != nil {
		add("%v", err)
	}
	s, err := w.observe(ctx)
	if err != nil {
		add("list the runtime: %v", err)
		return lines
	}
	byID := map[string]instance{}
	highest := map[[2]string]instance{}
	for _, is := range s.instances {
		byID[is.ID] = is
		if key := [2]string{is.uid, is.Name}; highest[key].ID == "" || is.RestartCount > highest[key].RestartCount {
			highest[key] = is
		}
	}
	for _, id := range w.doomed {
		if is := byID[id]; is.running() {
			add("pod %s: %s was killed, and the runtime reports it as running", w.checker.podName(is.uid), is.Name)
		}
	}
	for _, name := range desired {
		pod := w.checker.podNamed(name)
		if pod == nil {
			add("pod %s is not in the API", name)
			continue
		}
		if why := difference(pod, byID, highest); why != "" {
			add("pod %s: %s", name, why)
		}
	}
	for _, uid := range w.checker.existing() {
		if name := w.checker.podName(uid); !slices.Contains(desired, name) {
			add("pod %s is still in the API", name)
		}
	}
	left, err := w.remaining(s)
	if err != nil {
		add("list remaining objects: %v", err)
	}
	return append(lines, left...)
}

// difference returns the difference of the status of a pod from its shape or from the runtime.
func difference(pod *v1.Pod, byID map[string]instance, highest map[[2]string]instance) string {
	shape := shapeNamed(pod.Labels["shape"])
	switch phase := pod.Status.Phase; {
	case shape.longRunning && phase != v1.PodRunning:
		return fmt.Sprintf("the phase is %s %s", cmp.Or(phase, "empty"), pod.Status.Reason)
	case shape.longRunning && !ready(pod):
		return "it is not Ready"
	case terminal(phase):
		return "" // exitCodesCorrect is checked elsewhere
	}
	for _, c := range containers(pod) {
		is, exists := byID[c.ContainerID]
		switch {
		case c.State.Running != nil && (!exists || !is.running()):
			return fmt.Sprintf("%s is reported as running, and is not running", c.Name)
		case c.State.Running == nil && exists && is.running():
			return fmt.Sprintf("%s is running, and is not reported as running", c.Name)
		}
		last, any := highest[[2]string{string(pod.UID), c.Name}]
		if any && last.RestartCount != c.RestartCount {
			return fmt.Sprintf("%s has %d restarts, and the runtime has attempt %d", c.Name, c.RestartCount, last.RestartCount)
		}
		if shape.longRunning && c.Name != "init" && c.State.Running == nil {
			return fmt.Sprintf("%s does not run: %s", c.Name, state(c))
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return "no status of its containers is reported"
	}
	return ""
}

// state describes the state of a container.
func state(c v1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason + " " + c.State.Waiting.Message
	case c.State.Terminated != nil:
		return fmt.Sprintf("exited with %d, %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	}
	return "running"
}
