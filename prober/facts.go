package prober

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A view is the current status of a pod.
type view struct {
	pod      *v1.Pod
	observed *runtime.PodStatus // nil: pod.Status is used
	hostIPs  []string
}

// facts returns the facts of a container, except started and before.
func (v view) facts(c *v1.Container) facts {
	f := facts{
		finished: v.pod.Status.Phase == v1.PodSucceeded || v.pod.Status.Phase == v1.PodFailed,
		deleting: v.pod.DeletionTimestamp != nil,
	}
	if v.observed != nil {
		if now := instance(v.observed, c.Name); now != nil {
			f.id, f.startedAt = now.ID, now.StartedAt
			f.running = now.State == runtime.ContainerRunning
			f.final = now.State == runtime.ContainerExited && podspec.ActionAfterExit(v.pod, c, podspec.ExitOf(now)) == podspec.NoRestart
		}
		return f
	}
	now := find(v.pod.Status.ContainerStatuses, c.Name)
	if now == nil {
		now = find(v.pod.Status.InitContainerStatuses, c.Name)
	}
	if now == nil {
		return f
	}
	f.id, f.running = now.ContainerID, now.State.Running != nil
	if f.running {
		f.startedAt = now.State.Running.StartedAt.Time
	}
	if end := now.State.Terminated; end != nil {
		f.final = podspec.ActionAfterExit(v.pod, c, podspec.TerminatedExit(end)) == podspec.NoRestart
	}
	return f
}

// ip returns the pod IP, empty if there is none yet. A runtime may report the IPs of the
// sandbox only.
func (v view) ip() string {
	if v.observed != nil && len(v.observed.IPs) > 0 {
		return v.observed.IPs[0]
	}
	if v.observed != nil && len(v.observed.Sandboxes) > 0 && !v.pod.Spec.HostNetwork {
		if sb := &v.observed.Sandboxes[0]; sb.State == runtime.SandboxReady && len(sb.IPs) > 0 {
			return sb.IPs[0]
		}
	}
	if v.pod.Spec.HostNetwork && len(v.hostIPs) > 0 {
		return v.hostIPs[0]
	}
	return v.pod.Status.PodIP
}

// instance returns the instance of a container that is probed: the running one, else the newest
// that was started. An instance that was created but not started, or whose postStart hook has
// not succeeded, has not failed (rule prober-16); it would be stopped as soon as it runs.
func instance(s *runtime.PodStatus, name string) *runtime.ContainerStatus {
	var newest *runtime.ContainerStatus
	for i := range s.Containers {
		switch c := &s.Containers[i]; {
		case c.Name != name || c.State == runtime.ContainerCreated || c.Starting:
		case c.State == runtime.ContainerRunning:
			return c
		case newest == nil:
			newest = c
		}
	}
	return newest
}

func find(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	i := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &statuses[i]
}

// passedInStatus reports whether the pod status, which this agent wrote before a restart,
// reports the instance as ready or started.
func passedInStatus(pod *v1.Pod, container, id string, k Kind) bool {
	for _, list := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		if s := find(list, container); s != nil && s.ContainerID == id {
			return k == Readiness && s.Ready || k == Startup && s.Started != nil && *s.Started
		}
	}
	return false
}
