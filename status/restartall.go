package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// restartingAll is the reason of containers that were taken down because the
// pod starts over (rt-142).
const restartingAll = "RestartingAllContainers"

// A pod starts over when a container exits so that a rule restarts all of them
// (rt-138). Every instance is then removed, those whose exit asked for it last
// (rt-140): as long as the runtime shows one of these, it is not done.

// trigger reports whether the runtime shows an exit for which the pod starts
// over.
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

// restarting returns the condition AllContainersRestarting (rt-139). If nobody
// looked, what was said stands.
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

// startsOver reports whether a container that is gone from the runtime, and of
// which old was said, was removed because its pod starts over: it has run, and
// an exit still asks for that, or did when the condition was last said, or it was
// said of the container already. Whoever tried to start it since knows better.
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
		return removedForRestart(old) // what was said of a pod that has ended stands
	} else if c := Condition(prev.Conditions, v1.AllContainersRestarting); c != nil && c.Status == v1.ConditionTrue {
		return true
	}
	return removedForRestart(old) || restartAllTriggered(f.Pod, f.Observed)
}

// removed fills in the status of a container that was removed so that its pod
// starts over (rt-142).
func applyRestartAll(s *v1.ContainerStatus, old *v1.ContainerStatus) {
	s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: restartingAll}}
	s.LastTerminationState = old.LastTerminationState
	s.RestartCount = old.RestartCount
	switch {
	case removedForRestart(old):
		return // counted already
	case old.State.Terminated != nil:
		s.LastTerminationState = old.State
	case old.State.Running != nil:
		s.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: exitLost, Reason: restartingAll, StartedAt: old.State.Running.StartedAt, ContainerID: old.ContainerID,
		}}
	}
	s.RestartCount++
}

// taken reports whether it was said that the container was removed because its
// pod starts over.
func removedForRestart(s *v1.ContainerStatus) bool {
	return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == restartingAll
}
