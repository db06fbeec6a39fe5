package oracle

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// statusInvariants are the invariants of the statuses that a watcher receives.
func statusInvariants() []Invariant {
	return []Invariant{{
		Name: "ready-implies-running", check: onVersion(readyImpliesRunning),
		Description: "a pod is Ready only if all of its regular containers run and are ready, and ContainersReady is true",
		Source:      "Pod lifecycle, Pod conditions: Ready means that the Pod can serve requests, ContainersReady that all containers are ready",
	}, {
		Name: "ready-implies-started", check: onVersion(readyImpliesStarted),
		Description: "a container is ready only if its startup probe has succeeded in the same instance",
		Source:      "API reference, ContainerStatus.started: false until the startup probe has passed; Probes: all other probes are disabled until then",
	}, {
		Name: "initializing-is-pending", check: onVersion(initializingIsPending),
		Description: "a pod whose condition Initialized is false is not Running",
		Source:      "Init containers, Detailed behavior: a Pod that is initializing is in the Pending state and has the condition Initialized set to false",
	}, {
		Name: "phase-never-regresses", check: onVersion(phaseNeverRegresses),
		Description: "a pod becomes Pending after it was Running at most once for each loss of its sandbox",
		Source:      "Pod lifecycle, Pod phase",
	}, {
		Name: "start-time-stable", check: onVersion(startTimeStable),
		Description: "status.startTime does not change",
		Source:      "API reference, PodStatus.startTime: when the object was acknowledged by the kubelet",
	}, {
		Name: "transition-time", check: onVersion(transitionTime),
		Description: "the lastTransitionTime of Initialized, PodReadyToStartContainers and PodScheduled changes only with the status of the condition",
		Source:      "API reference, PodCondition.lastTransitionTime: the last time the condition transitioned from one status to another",
	}, {
		Name: "restart-count-of-instance", check: onVersion(restartCountOfInstance),
		Description: "the restartCount that is reported with an instance is the number of instances before it",
		Source:      "API reference, ContainerStatus.restartCount: the number of times the container has been restarted",
	}, {
		Name: "exit-reported-once", check: onVersion(exitReportedOnce),
		Description: "what is reported of the end of an instance (code, reason, time) does not change",
		Source:      "Pod lifecycle, Container states: Terminated has the reason, the exit code, and the start and finish time of that period of execution",
	}, {
		Name: "succeeded-means-success", check: onVersion(succeededMeansSuccess),
		Description: "a pod that is Succeeded, and was not deleted, has only containers that have exited by themselves with 0, and no reason of a failure",
		Source:      "Pod lifecycle, Pod phase: Succeeded means that all containers have terminated in success, and will not be restarted",
	}, {
		Name: "failed-means-failure", check: onVersion(failedMeansFailure),
		Description: "a pod that is Failed without a reason, and was not deleted, has a container that has failed or has not run",
		Source:      "Pod lifecycle, Pod phase: Failed means that at least one container has terminated in failure",
	}, {
		Name: "completed-before-deadline", check: onVersion(completedBeforeDeadline),
		Description: "a pod does not fail with DeadlineExceeded if all of its containers completed 2 seconds or more before the deadline",
		Source:      "API reference, PodSpec.activeDeadlineSeconds: the duration that the pod may be active; Pod phase: Succeeded if all containers have terminated in success",
	}, {
		Name: "observed-generation-sane", check: onVersion(observedGenerationSane),
		Description: "status.observedGeneration never exceeds metadata.generation and never decreases",
		Source:      "API reference, PodStatus.observedGeneration",
	}}
}

// onVersion makes a check of the versions of pods that another client has not written.
func onVersion(check func(v *view, p *podView) string) func(*view, *Record) []finding {
	return func(v *view, r *Record) []finding {
		if r.Pod == nil || r.Pod.Deleted {
			return nil
		}
		p := v.pods[r.Pod.Pod.UID]
		if p.marked {
			return nil
		}
		if message := check(v, p); message != "" {
			return found(p.uid, "%s", message)
		}
		return nil
	}
}

func condition(s *v1.PodStatus, kind v1.PodConditionType) *v1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

func isTrue(s *v1.PodStatus, kind v1.PodConditionType) bool {
	c := condition(s, kind)
	return c != nil && c.Status == v1.ConditionTrue
}

func readyImpliesRunning(_ *view, p *podView) string {
	s := &p.pod.Status
	if !isTrue(s, v1.PodReady) {
		return ""
	}
	if !isTrue(s, v1.ContainersReady) {
		return "Ready is true, and ContainersReady is not"
	}
	for _, c := range s.ContainerStatuses {
		if c.State.Running == nil || !c.Ready {
			return fmt.Sprintf("Ready is true; %s: running=%t ready=%t", c.Name, c.State.Running != nil, c.Ready)
		}
	}
	return ""
}

// readyImpliesStarted compares with the probes that ran, and with the field started.
func readyImpliesStarted(_ *view, p *podView) string {
	for _, c := range slices.Concat(p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses) {
		if c.Ready && c.State.Running != nil && (c.Started == nil || !*c.Started) {
			return c.Name + " is ready and not started"
		}
	}
	return ""
}

func initializingIsPending(_ *view, p *podView) string {
	c := condition(&p.pod.Status, v1.PodInitialized)
	if p.pod.Status.Phase == v1.PodRunning && c != nil && c.Status == v1.ConditionFalse {
		return "the phase is Running, and Initialized is false"
	}
	return ""
}

func phaseNeverRegresses(v *view, p *podView) string {
	if p.regressions > p.losses && !p.removed && !v.stale {
		return fmt.Sprintf("Pending after Running, %d times; it has lost its sandbox %d times", p.regressions, p.losses)
	}
	return ""
}

func startTimeStable(_ *view, p *podView) string {
	if p.before == nil || p.before.Status.StartTime == nil {
		return ""
	}
	if was, is := p.before.Status.StartTime, p.pod.Status.StartTime; is == nil || !is.Equal(was) {
		return fmt.Sprintf("from %v to %v", was, is)
	}
	return ""
}

// transitionTime does not apply to readiness, which may have changed twice between two versions.
func transitionTime(v *view, p *podView) string {
	if p.before == nil || p.sandboxAt+5*time.Second >= p.beforeAt || p.sandboxAt <= v.faultAt && v.faultAt > 0 {
		return "" // two changes of the sandbox may be between the versions
	}
	for _, kind := range []v1.PodConditionType{v1.PodInitialized, v1.PodReadyToStartContainers, v1.PodScheduled} {
		was, is := condition(&p.before.Status, kind), condition(&p.pod.Status, kind)
		if was != nil && is != nil && was.Status == is.Status && !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
			return fmt.Sprintf("%s remained %s, and its lastTransitionTime went from %v to %v", kind, is.Status, was.LastTransitionTime, is.LastTransitionTime)
		}
	}
	return ""
}

func restartCountOfInstance(v *view, p *podView) string {
	if p.removed || v.stale {
		return ""
	}
	for _, c := range slices.Concat(p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses) {
		is := p.instances[bareID(c.ContainerID)]
		if is != nil && (c.State.Running != nil || c.State.Terminated != nil) && uint32(c.RestartCount) != is.attempt {
			return fmt.Sprintf("%s is instance %d, and restartCount is %d", c.Name, is.attempt, c.RestartCount)
		}
	}
	return ""
}

func bareID(id string) string { return id[min(len(id), len(containerID(""))):] }

func exitReportedOnce(v *view, p *podView) string {
	if p.before == nil || p.removed || v.stale {
		return ""
	}
	ends := map[string]*v1.ContainerStateTerminated{}
	for _, c := range slices.Concat(p.before.Status.InitContainerStatuses, p.before.Status.ContainerStatuses) {
		for _, t := range []*v1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if t != nil && t.ContainerID != "" {
				ends[t.ContainerID] = t
			}
		}
	}
	for _, c := range slices.Concat(p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses) {
		for _, t := range []*v1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if t == nil || ends[t.ContainerID] == nil {
				continue
			}
			if was := ends[t.ContainerID]; was.ExitCode != t.ExitCode || was.Reason != t.Reason || !was.FinishedAt.Equal(&t.FinishedAt) {
				return fmt.Sprintf("%s: first %d %s, then %d %s", c.Name, was.ExitCode, was.Reason, t.ExitCode, t.Reason)
			}
		}
	}
	return ""
}

func succeededMeansSuccess(v *view, p *podView) string {
	if p.pod.Status.Phase != v1.PodSucceeded || p.pod.DeletionTimestamp != nil || p.removed || v.stale {
		return ""
	}
	if r := p.pod.Status.Reason; r != "" {
		return "the reason is " + r
	}
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		switch is := p.newest(c.Name); {
		case is == nil:
			return c.Name + " has never run"
		case is.endedAt == 0:
			return c.Name + " runs"
		case is.code != 0:
			return fmt.Sprintf("%s has exited with %d", c.Name, is.code)
		case is.exit().Replaced:
			return c.Name + " was stopped because of its probe"
		}
	}
	return ""
}

func failedMeansFailure(v *view, p *podView) string {
	if p.pod.Status.Phase != v1.PodFailed || p.pod.DeletionTimestamp != nil || p.pod.Status.Reason != "" || p.removed || p.changed || v.stale {
		return ""
	}
	for _, list := range [][]v1.Container{p.pod.Spec.InitContainers, p.pod.Spec.Containers} {
		for i := range list {
			if is := p.newest(list[i].Name); is == nil || is.endedAt == 0 || is.code != 0 || is.reason == "OOMKilled" {
				return ""
			}
		}
	}
	return "each container has exited with 0"
}

// deadlineResolution is more than the resolution of the times in a status, in which a
// container that completes and the deadline of its pod have no order.
const deadlineResolution = 2 * time.Second

// completedFor returns how long before its deadline a pod has completed; false if it has
// no deadline, or a container of it runs, may restart or has failed.
func completedFor(p *podView) (time.Duration, bool) {
	s := &p.pod.Status
	if p.pod.Spec.ActiveDeadlineSeconds == nil || s.StartTime == nil || len(s.ContainerStatuses) < len(p.pod.Spec.Containers) {
		return 0, false
	}
	deadline := s.StartTime.Add(time.Duration(*p.pod.Spec.ActiveDeadlineSeconds) * time.Second)
	least := time.Duration(1<<63 - 1)
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		is := p.newest(c.Name)
		if !p.over(c, is) || is.code != 0 {
			return 0, false
		}
		for _, status := range s.ContainerStatuses {
			if status.Name == c.Name && status.State.Terminated != nil {
				least = min(least, deadline.Sub(status.State.Terminated.FinishedAt.Time))
			}
		}
	}
	return least, true
}

func completedBeforeDeadline(v *view, p *podView) string {
	if p.pod.Status.Phase != v1.PodFailed || p.pod.Status.Reason != "DeadlineExceeded" || p.removed || v.stale {
		return ""
	}
	if before, ok := completedFor(p); ok && before >= deadlineResolution {
		return fmt.Sprintf("its containers completed %v before the deadline", before)
	}
	return ""
}

func observedGenerationSane(_ *view, p *podView) string {
	is := p.pod.Status.ObservedGeneration
	if is > p.pod.Generation {
		return fmt.Sprintf("observedGeneration is %d, generation is %d", is, p.pod.Generation)
	}
	if p.before != nil && is < p.before.Status.ObservedGeneration {
		return fmt.Sprintf("observedGeneration went from %d to %d", p.before.Status.ObservedGeneration, is)
	}
	return ""
}

// margin is what a step of a kubelet may take on a slow machine.
const margin = 30 * time.Second
