package runtimetest

import (
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Restore adds the sandbox and the containers that pod.Status reports, as if this Runtime had
// run them: a container that runs continues, with its restart count, and exits when its
// behavior specifies it, counted from its start. It is for a Runtime that replaces one whose
// state was lost. It returns false, and changes nothing, if the Runtime has the pod already, or
// if no container of it was started.
func (r *Runtime) Restore(pod *v1.Pod) bool {
	if !wasStarted(pod) {
		return false
	}
	behaviors := map[string]*fake.Behavior{}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			behaviors[list[i].Name] = r.behavior(pod, &list[i])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[pod.UID] != nil {
		return false
	}
	p := r.podLocked(pod.UID, pod.Name, pod.Namespace)
	p.source = pod.Annotations[runtime.ConfigSourceAnnotation]
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		p.grace = new(*g)
	}
	r.restoreSandboxLocked(p, pod)
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if c := containerOf(pod, statuses[i].Name); c != nil {
				r.restoreContainerLocked(p, pod, c, &statuses[i], behaviors[c.Name])
			}
		}
	}
	r.sortLocked()
	r.changedLocked(pod.UID)
	return true
}

// wasStarted reports whether a container of the pod has run.
func wasStarted(pod *v1.Pod) bool {
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if s := &statuses[i]; s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

func containerOf(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// restoreSandboxLocked adds the sandbox of a pod with the addresses in its status.
func (r *Runtime) restoreSandboxLocked(p *pod, pod *v1.Pod) {
	r.ids++
	sb := &runtime.SandboxStatus{
		ID: "sandbox-" + strconv.Itoa(r.ids), State: runtime.SandboxReady, CreatedAt: pod.CreationTimestamp.Time,
		HostNetwork: pod.Spec.HostNetwork, NetworkReported: !pod.Spec.HostNetwork,
	}
	if pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded {
		sb.State = runtime.SandboxNotReady
	}
	if pod.Status.StartTime != nil {
		sb.CreatedAt = pod.Status.StartTime.Time
	}
	if !pod.Spec.HostNetwork {
		for _, ip := range pod.Status.PodIPs {
			sb.IPs = append(sb.IPs, ip.IP)
		}
		if len(sb.IPs) == 0 {
			sb.IPs = []string{r.addressLocked()}
		}
	}
	p.sandboxes = append(p.sandboxes, sb)
	r.observeLocked(p, Change{Sandbox: sb})
}

// restoreContainerLocked adds the instances of a container that its status reports: the last
// one that terminated, and the current one.
func (r *Runtime) restoreContainerLocked(p *pod, pod *v1.Pod, c *v1.Container, s *v1.ContainerStatus, b *fake.Behavior) {
	current := s.RestartCount
	if s.State.Running == nil && s.State.Terminated == nil {
		current++ // it waits for the next instance
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		r.restoreInstanceLocked(p, pod, c, s, b, max(current-1, 0), t.ContainerID).terminated(t)
	}
	switch {
	case s.State.Terminated != nil:
		r.restoreInstanceLocked(p, pod, c, s, b, current, s.State.Terminated.ContainerID).terminated(s.State.Terminated)
	case s.State.Running != nil:
		v := r.restoreInstanceLocked(p, pod, c, s, b, current, s.ContainerID)
		v.status.State, v.status.CreatedAt = runtime.ContainerRunning, s.State.Running.StartedAt.Time
		v.status.StartedAt = v.status.CreatedAt
		r.exitAsSpecifiedLocked(v, time.Since(v.status.StartedAt))
	}
	for i := range p.containers {
		if v := p.containers[i]; v.status.Name == c.Name {
			r.observeLocked(p, Change{Container: &v.status})
		}
	}
}

func (r *Runtime) restoreInstanceLocked(p *pod, pod *v1.Pod, c *v1.Container, s *v1.ContainerStatus, b *fake.Behavior, restarts int32, id string) *instance {
	r.ids++
	if id == "" { // reported by something that has no IDs
		id = instanceID(c.Name, r.ids)
	} else if n, err := strconv.Atoi(id[strings.LastIndex(id, "-")+1:]); err == nil {
		r.ids = max(r.ids, n) // later ones are different
	}
	v := &instance{
		pod: p, behavior: b, stubborn: b.IgnoreTERM, turn: turnOf(pod, c), done: make(chan struct{}),
		status: runtime.ContainerStatus{
			ID: id, Name: c.Name, SandboxID: p.sandboxes[0].ID, RestartCount: restarts,
			Hash: plan.Hash(c), Image: c.Image, ImageID: c.Image, ImageRef: c.Image,
		},
	}
	p.attempts[c.Name] = restarts + 1
	p.containers = append(p.containers, v)
	if r.instances == nil {
		r.instances = map[string]*instance{}
	}
	r.instances[id] = v
	return v
}

// terminated makes a restored instance one that has exited.
func (v *instance) terminated(t *v1.ContainerStateTerminated) {
	v.status.State, v.status.CreatedAt, v.status.StartedAt, v.status.FinishedAt = runtime.ContainerExited, t.StartedAt.Time, t.StartedAt.Time, t.FinishedAt.Time
	v.status.ExitCode, v.status.Reason, v.status.Message = t.ExitCode, t.Reason, t.Message
	close(v.done)
}
