package status

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Reasons and messages of the kubelet for containers whose exit was not observed (rules st-5, st-6,
// st-8). The double space is the kubelet's.
const (
	reasonUnknown     = "ContainerStatusUnknown"
	lostAtTermination = "The container could not be located when the pod was terminated"
	lostAtDeletion    = "The container could not be located when the pod was deleted.  The container used to be Running"
	initPresumedDone  = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"

	exitLost = 137 // as if killed
)

// containerStatuses returns the statuses of the containers in the spec of f.Pod: init containers in the
// order of the spec, the others by name (rule st-13). Instances of other containers are ignored.
func containerStatuses(f Facts) (init, regular, ephemeral []v1.ContainerStatus) {
	spec, prev := &f.Pod.Spec, f.previous()
	if f.rejectedBeforeStart(prev) {
		return slices.Clone(prev.InitContainerStatuses), slices.Clone(prev.ContainerStatuses), slices.Clone(prev.EphemeralContainerStatuses)
	}
	for i := range spec.InitContainers {
		init = append(init, containerStatus(&f, &spec.InitContainers[i], kindInit, find(prev.InitContainerStatuses, spec.InitContainers[i].Name)))
	}
	for i := range spec.Containers {
		regular = append(regular, containerStatus(&f, &spec.Containers[i], kindRegular, find(prev.ContainerStatuses, spec.Containers[i].Name)))
	}
	for i := range spec.EphemeralContainers {
		c := v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		ephemeral = append(ephemeral, containerStatus(&f, &c, kindEphemeral, find(prev.EphemeralContainerStatuses, c.Name)))
	}
	byName := func(a, b v1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(regular, byName)
	slices.SortStableFunc(ephemeral, byName)
	return init, regular, ephemeral
}

// rejectedBeforeStart reports whether the pod failed before it was inspected, or before any container
// status was reported. Its container statuses are those reported before (rule sl-18).
func (f *Facts) rejectedBeforeStart(prev *v1.PodStatus) bool {
	if f.Observed == nil {
		return f.Termination.Failed
	}
	return (f.Termination.Failed || prev.Phase == v1.PodFailed) && len(f.Observed.Containers) == 0 &&
		len(prev.InitContainerStatuses)+len(prev.ContainerStatuses)+len(prev.EphemeralContainerStatuses) == 0
}

// kind is the list of the spec that contains a container.
type kind int

const (
	kindRegular kind = iota
	kindInit
	kindEphemeral
)

// containerStatus returns the status of one container from its observed instances and old, the status
// last reported; nil if there is none.
func containerStatus(f *Facts, c *v1.Container, k kind, old *v1.ContainerStatus) v1.ContainerStatus {
	s := base(f.Pod, c, old)
	if f.Observed == nil {
		if old != nil {
			s = *old
		}
	} else if now, before := instances(f.Observed, c.Name); now != nil {
		applyInstance(&s, f.Pod, now, before, old)
		s.AllocatedResources, s.Resources = resources(f.Pod, c, now, k)
	} else if old != nil && k != kindEphemeral && removedByRestartAll(f, old) {
		applyRestartAll(&s, old)
	} else if old != nil && k == kindEphemeral && old.State.Running != nil {
		s.ContainerID, s.ImageID = old.ContainerID, old.ImageID // it runs once, so it is not waiting
		s.State = v1.ContainerState{Terminated: lostExit(old.ContainerID, lostAtDeletion)}
	} else if old != nil {
		applyMissing(&s, f.Pod, old)
	}
	if k == kindInit && !podspec.IsSidecar(c) && s.State.Waiting != nil && f.Observed != nil {
		presumeCompleted(&s, f)
	}
	applyWaiting(&s, f, c, k, old)
	s.VolumeMounts = volumeMounts(c, old, f.RecursiveReadOnly)
	if f.DeviceHealth != nil {
		s.AllocatedResourcesStatus = f.DeviceHealth[c.Name]
	} else if old != nil && old.ContainerID == s.ContainerID {
		s.AllocatedResourcesStatus = old.AllocatedResourcesStatus
	}
	s.Ready, s.Started = readiness(&s, f, c, k, old)
	return s
}

// base returns the status of a container without observed instances (rule st-1), with the values that
// it keeps from old (rule st-2).
func base(pod *v1.Pod, c *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name:  c.Name,
		Image: c.Image,
		State: notStarted(pod),
	}
	switch {
	case old == nil:
	case old.State.Terminated != nil:
		s = *old
	default:
		s.RestartCount = old.RestartCount
		s.LastTerminationState = old.LastTerminationState
		if end := ended(old); end != nil && end.ContainerID == old.ContainerID {
			// It waits for its restart and keeps what was reported of the exited instance.
			s.ContainerID, s.Image, s.ImageID = old.ContainerID, old.Image, old.ImageID
			s.AllocatedResources, s.Resources, s.User, s.StopSignal = old.AllocatedResources, old.Resources, old.User, old.StopSignal
		}
	}
	return s
}

// notStarted returns the state of a container that has not been started.
func notStarted(pod *v1.Pod) v1.ContainerState {
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
}

// instances returns the current instance of the named container and the one before it, or nil. A
// running instance is the current one even if a newer one was created; else it is the newest.
func instances(observed *runtime.PodStatus, name string) (now, before *runtime.ContainerStatus) {
	for i := range observed.Containers {
		switch c := &observed.Containers[i]; {
		case c.Name != name:
		case now == nil:
			now = c
		case now.State != runtime.ContainerRunning && c.State == runtime.ContainerRunning:
			now, before = c, now
		case before == nil:
			before = c
		}
	}
	return now, before
}

// applyInstance sets the status of a container with instances.
func applyInstance(s *v1.ContainerStatus, pod *v1.Pod, now, before *runtime.ContainerStatus, old *v1.ContainerStatus) {
	s.ContainerID = now.ID
	s.RestartCount = max(s.RestartCount, now.RestartCount)
	if now.Image != "" {
		s.Image = now.Image
	}
	s.ImageID = now.ImageRef
	if s.ImageID == "" {
		s.ImageID = now.ImageID
	}

	if now.User != nil {
		s.User = now.User
	} else if s.User = nil; old != nil && old.ContainerID == now.ID {
		s.User = old.User
	}
	s.StopSignal = nil
	if now.StopSignal != "" {
		s.StopSignal = &now.StopSignal
	} else if old != nil && old.ContainerID == now.ID {
		s.StopSignal = old.StopSignal
	}

	s.LastTerminationState = lastState(now, before, old)
	switch now.State {
	case runtime.ContainerRunning:
		if now.Starting {
			s.State = notStarted(pod)
			break
		}
		if old != nil && old.State.Terminated != nil && old.ContainerID != now.ID && now.RestartCount <= old.RestartCount {
			s.RestartCount = old.RestartCount + 1 // the runtime has lost the restart count
		}
		s.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: seconds(now.StartedAt)}}
	case runtime.ContainerExited:
		s.State = v1.ContainerState{Terminated: exit(now, old)}
	case runtime.ContainerUnknown:
		switch reported := reportedExit(old, now.ID); {
		case reported != nil:
			s.State = v1.ContainerState{Terminated: reported}
		case old != nil && old.State.Running != nil:
			s.State = v1.ContainerState{Terminated: lostExit(now.ID, lostAtTermination)}
			s.RestartCount = max(s.RestartCount, old.RestartCount+1)
		default:
			s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
		}
	default: // created; a kubelet, which observes this rarely, reports no reason
		s.State = notStarted(pod)
	}
}

// lastState returns the last termination state: that of the instance before now, or if the runtime has
// removed it, the reported one.
func lastState(now, before *runtime.ContainerStatus, old *v1.ContainerStatus) v1.ContainerState {
	if before != nil && before.State == runtime.ContainerExited {
		return v1.ContainerState{Terminated: exit(before, old)}
	}
	if old == nil {
		return v1.ContainerState{}
	}
	if t := old.State.Terminated; t != nil && t.ContainerID != now.ID {
		return old.State
	}
	if old.LastTerminationState.Terminated != nil && reportedExit(old, now.ID) == old.LastTerminationState.Terminated {
		// The exit was moved here while the container waited for a restart. It was
		// not restarted, so the exit is its state again.
		return v1.ContainerState{}
	}
	return old.LastTerminationState
}

// exit returns the termination state of an exited instance. A reported exit is kept, since a runtime may
// report it differently later; only ContainerStatusUnknown is replaced by the observed exit.
func exit(c *runtime.ContainerStatus, old *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if reported := reportedExit(old, c.ID); reported != nil && reported.Reason != reasonUnknown {
		return reported
	}
	return &v1.ContainerStateTerminated{
		ExitCode:    c.ExitCode,
		Reason:      c.Reason,
		Message:     c.Message,
		StartedAt:   seconds(c.StartedAt),
		FinishedAt:  seconds(c.FinishedAt),
		ContainerID: c.ID,
	}
}

// reportedExit returns the exit of that instance as it was reported, or nil.
func reportedExit(old *v1.ContainerStatus, id string) *v1.ContainerStateTerminated {
	if old == nil || id == "" {
		return nil
	}
	for _, t := range []*v1.ContainerStateTerminated{old.State.Terminated, old.LastTerminationState.Terminated} {
		if t != nil && t.ContainerID == id {
			return t
		}
	}
	return nil
}

// lostExit returns the termination state of a container whose exit was not observed.
func lostExit(id, message string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{ExitCode: exitLost, Reason: reasonUnknown, Message: message, ContainerID: id}
}

// applyMissing sets the status of a container whose instances the runtime has lost (rules st-6, st-7).
func applyMissing(s *v1.ContainerStatus, pod *v1.Pod, old *v1.ContainerStatus) {
	if old.State.Running == nil || old.LastTerminationState.Terminated != nil {
		return
	}
	s.LastTerminationState = v1.ContainerState{Terminated: lostExit(old.ContainerID, lostAtDeletion)}
	if pod.DeletionTimestamp == nil {
		s.RestartCount = old.RestartCount + 1
	}
}

// presumeCompleted reports a missing init container as succeeded if a regular container was created in
// the newest sandbox (rule st-8): in a new sandbox the init containers run again. It does not apply to
// one whose start has failed, or that was removed because all containers restart.
func presumeCompleted(s *v1.ContainerStatus, f *Facts) {
	if _, tried := f.Waiting[s.Name]; tried || removedForRestart(s) || restartAllTriggered(f.Pod, f.Observed) {
		return
	}
	if now, _ := instances(f.Observed, s.Name); now != nil {
		return
	}
	sandbox := ""
	if len(f.Observed.Sandboxes) > 0 {
		sandbox = f.Observed.Sandboxes[0].ID
	}
	if hasRegular(f.Pod, f.Observed, sandbox) {
		id := s.ContainerID
		if t := s.LastTerminationState.Terminated; t != nil && t.ContainerID == id {
			id = "" // that instance failed, so a later one succeeded
		}
		s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: "Completed", Message: initPresumedDone, ContainerID: id,
		}}
	}
}

// applyWaiting sets the reason why a container that should run does not (rules st-9 to st-11). Its exit
// becomes the last termination state.
func applyWaiting(s *v1.ContainerStatus, f *Facts, c *v1.Container, k kind, old *v1.ContainerStatus) {
	if s.State.Running != nil || f.Termination.Terminal || f.Termination.Failed || f.Pod.DeletionTimestamp != nil {
		return
	}
	waiting, ok := f.Waiting[c.Name]
	if end := s.State.Terminated; end != nil {
		if k == kindEphemeral || !restartable(f.Pod, f.Observed, c, end) {
			return
		}
		if !ok && mustWait(f.Pod, c, end) {
			waiting, ok = waitingBefore(f.Pod, old), true
		}
		if ok {
			s.LastTerminationState = s.State
		}
	}
	if ok {
		s.State = v1.ContainerState{Waiting: &waiting}
	}
}

// waitingBefore returns the reason to wait that was last reported for a container.
func waitingBefore(pod *v1.Pod, old *v1.ContainerStatus) v1.ContainerStateWaiting {
	if old != nil && old.State.Waiting != nil {
		return *old.State.Waiting
	}
	return *notStarted(pod).Waiting
}

// mustWait reports whether a container that will restart must be published as waiting, because the
// API server would take its exit for final: it knows only the exit code. An init container that was
// killed for lack of memory may have exited with zero.
func mustWait(pod *v1.Pod, c *v1.Container, end *v1.ContainerStateTerminated) bool {
	return !podspec.MayRestartAll(pod) && !podspec.RestartsAll(c, end.ExitCode) &&
		podspec.ActionAfterCode(pod, c, end.ExitCode) == podspec.NoRestart
}

// readiness returns whether a container is ready and started (rules st-17, st-18, st-20). An ephemeral
// container is not ready, and started is nil.
func readiness(s *v1.ContainerStatus, f *Facts, c *v1.Container, k kind, old *v1.ContainerStatus) (ready bool, started *bool) {
	if k == kindEphemeral {
		return false, nil
	}
	if s.State.Running == nil {
		end := s.State.Terminated
		return k == kindInit && !podspec.IsSidecar(c) && end != nil && succeeded(f.Pod, f.Observed, c, end), new(false)
	}
	if k == kindInit && !podspec.IsSidecar(c) {
		return false, new(true) // without probes; ready when it has succeeded
	}
	if f.Probes == nil {
		return true, new(true)
	}
	probed := f.Probes[c.Name]
	same := old != nil && old.ContainerID == s.ContainerID
	up := c.StartupProbe == nil || passed(probed.Startup, same && old.Started != nil && *old.Started)
	return up && (c.ReadinessProbe == nil || passed(probed.Readiness, same && old.Ready)), &up
}

// passed reports whether a probe counts as successful. Without a result it is before, the reported value
// of the same instance, so that a restart of the agent does not change readiness (rule st-19).
func passed(r runtime.ProbeResult, before bool) bool {
	return r == runtime.ProbeSuccess || r == runtime.ProbeUnknown && before
}

// volumeMounts returns the statuses of the volume mounts (rule st-14), which do not change once reported.
// IfPossible is Enabled if the runtime handler supports recursive read-only mounts.
func volumeMounts(c *v1.Container, old *v1.ContainerStatus, possible bool) []v1.VolumeMountStatus {
	if old != nil && len(old.VolumeMounts) > 0 {
		return old.VolumeMounts
	}
	var mounts []v1.VolumeMountStatus
	for _, m := range c.VolumeMounts {
		st := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			st.RecursiveReadOnly = new(v1.RecursiveReadOnlyDisabled)
			if r := m.RecursiveReadOnly; r != nil && (*r == v1.RecursiveReadOnlyEnabled || *r == v1.RecursiveReadOnlyIfPossible && possible) {
				st.RecursiveReadOnly = new(v1.RecursiveReadOnlyEnabled)
			}
		}
		mounts = append(mounts, st)
	}
	return mounts
}
