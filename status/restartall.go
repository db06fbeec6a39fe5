package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// restartingAll is the reason of containers that were removed because all containers of the pod restart
// (rule rt-142).
const restartingAll = "RestartingAllContainers"

// restartAllTriggered reports whether the current instance of a container in the newest sandbox has an
// exit that restarts all containers (rule rt-138). All instances are then removed, the triggering ones
// last, so the restart is in progress as long as the runtime lists one of them.
func restartAllTriggered(pod *v1.Pod, observed *runtime.PodStatus) bool {
	if observed == nil || pod.DeletionTimestamp != nil {
		return false
	}
	sandbox := ""
	if len(observed.Sandboxes) > 0 {
		sandbox = observed.Sandboxes[0].ID
	}
	for c := range podspec.Containers(pod) {
		now, _ := instances(observed, c.Name)
		if now != nil && now.SandboxID == sandbox && now.State == runtime.ContainerExited && podspec.RestartsAll(c, now.ExitCode) {
			return true
		}
	}
	return false
}

// restarting returns the condition AllContainersRestarting (rule rt-139). If the pod was not inspected,
// the condition is unchanged.
func restarting(f *conditionFacts) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	was := Condition(f.Previous, c.Type)
	switch {
	case f.Status.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case f.Status.Phase == v1.PodFailed:
		c.Reason = "PodFailed"
	case f.Observed == nil && was != nil && was.Status == v1.ConditionTrue, restartAllTriggered(f.Pod, f.Observed):
		c.Status = v1.ConditionTrue
		c.Reason, c.Message = "RestartAllContainersStarted", "container exited with restart policy rule"
	}
	return c
}

// removedByRestartAll reports whether a missing container, last reported as old, was removed because all
// containers restart: it has run, and the restart is in progress, was in progress at the last report, or
// was reported for the container. If a start was attempted since, its result is reported instead.
func removedByRestartAll(f *Facts, old *v1.ContainerStatus) bool {
	if f.Pod.DeletionTimestamp != nil || f.Termination.Terminal || f.Termination.Failed || !podspec.MayRestartAll(f.Pod) {
		return false
	}
	if _, tried := f.Waiting[old.Name]; tried {
		return false
	}
	if old.State.Running == nil && old.State.Terminated == nil && old.LastTerminationState.Terminated == nil {
		return false
	}
	if prev := f.previous(); Terminal(prev.Phase) || Terminal(f.Pod.Status.Phase) {
		return removedForRestart(old) // the status of a terminal pod does not change
	} else if c := Condition(prev.Conditions, v1.AllContainersRestarting); c != nil && c.Status == v1.ConditionTrue {
		return true
	}
	return removedForRestart(old) || restartAllTriggered(f.Pod, f.Observed)
}

// applyRestartAll sets the status of a container that was removed because all containers restart (rule
// rt-142).
func applyRestartAll(s *v1.ContainerStatus, old *v1.ContainerStatus) {
	s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: restartingAll}}
	s.LastTerminationState = old.LastTerminationState
	s.RestartCount = old.RestartCount
	switch {
	case removedForRestart(old):
		return // the restart is counted already
	case old.State.Terminated != nil:
		s.LastTerminationState = old.State
	case old.State.Running != nil:
		s.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: exitLost, Reason: restartingAll, StartedAt: old.State.Running.StartedAt, ContainerID: old.ContainerID,
		}}
	}
	s.RestartCount++
}

// removedForRestart reports whether s reports the container as removed because all containers restart.
func removedForRestart(s *v1.ContainerStatus) bool {
	return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == restartingAll
}
