package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// terminatedStatus returns the final status of a pod whose containers have stopped and whose
// resources are released (rules st-59 to st-61): a container without an observed exit terminates
// with exit code 137, and a pod that is not terminal fails, unless it is static: its source may
// start it again. It is idempotent and changes neither argument.
func terminatedStatus(pod *v1.Pod, last v1.PodStatus, now time.Time) v1.PodStatus {
	s := *last.DeepCopy()
	if pastInit(pod, &s) {
		for i := range s.ContainerStatuses {
			markLost(&s.ContainerStatuses[i])
		}
	}
	for i := range startedInit(s.InitContainerStatuses) {
		markLost(&s.InitContainerStatuses[i])
	}
	if !Terminal(s.Phase) && !runtime.IsStatic(pod) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, "", ""
	}
	s.Conditions = computeConditions(conditionFacts{Pod: pod, Status: &s, Previous: last.Conditions, Now: now})
	return s
}

// pastInit reports whether the init containers of the pod have completed, so that every regular container
// without an exit is reported as lost (rule st-59).
func pastInit(pod *v1.Pod, s *v1.PodStatus) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	if slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.LastTerminationState.Terminated != nil || c.State.Waiting == nil
	}) {
		return true
	}
	if len(s.InitContainerStatuses) == 0 {
		return false
	}
	last := s.InitContainerStatuses[len(s.InitContainerStatuses)-1]
	for _, t := range []*v1.ContainerStateTerminated{last.State.Terminated, last.LastTerminationState.Terminated} {
		if t != nil && podspec.Succeeded(pod, &pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1], podspec.TerminatedExit(t)) {
			return true
		}
	}
	return false
}

// startedInit returns the init containers up to the last one that was started, at least the first (rule
// st-60).
func startedInit(init []v1.ContainerStatus) []v1.ContainerStatus {
	for i := len(init) - 1; i > 0; i-- {
		if init[i].State.Waiting == nil || init[i].LastTerminationState.Terminated != nil {
			return init[:i+1]
		}
	}
	return init[:min(1, len(init))]
}

// markLost reports a container without an observed exit as terminated.
func markLost(c *v1.ContainerStatus) {
	if c.State.Terminated != nil {
		return
	}
	c.State = v1.ContainerState{Terminated: lostExit(c.ContainerID, lostAtTermination)}
	c.Ready, c.Started = false, new(false)
}
