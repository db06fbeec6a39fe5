package chaos

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// status processes a pod of the API. It reports whether its phase is terminal for the first
// time.
func (c *checker) status(pod *v1.Pod) (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.historyLocked(string(pod.UID))
	before := h.last
	h.last, h.name, h.shape = pod, pod.Name, shapeNamed(pod.Labels["shape"])
	c.names[pod.Name] = h
	if h.shape == nil {
		return false // not a pod of the run
	}
	// A terminated pod is deleted again, with another time and no grace period.
	if grace := pod.DeletionGracePeriodSeconds; h.deletedAt.IsZero() && grace != nil && *grace > 0 {
		h.deletedAt = pod.DeletionTimestamp.Add(-time.Duration(*grace) * time.Second)
	}
	observed := *pod
	sim.SetIncarnation(&observed, 1)
	if before == nil {
		c.addLocked(sim.Entry{Kind: sim.PodAdded, Object: &observed}, h)
	} else if rank(pod.Status.Phase) < rank(before.Status.Phase) && !terminal(before.Status.Phase) {
		// A pod that loses its sandbox runs its init containers again and is pending meanwhile.
		c.checkLocked(runningNotPending, h.disturb > 0, h.name, "%s after %s", pod.Status.Phase, before.Status.Phase)
	}
	c.addLocked(sim.Entry{Kind: sim.StatusUpdated, Object: &observed, Status: c.observedExits(h, &pod.Status)}, h)
	if !terminal(pod.Status.Phase) {
		return false
	}
	if ended = h.terminalSince.IsZero(); ended {
		h.terminalSince = c.now()
	}
	return ended
}

// observedExits returns a status without the IDs of the terminated instances whose exit was not observed: their exit
// codes cannot be checked.
func (c *checker) observedExits(h *podHistory, reported *v1.PodStatus) *v1.PodStatus {
	s := reported.DeepCopy()
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			for _, end := range []*v1.ContainerStateTerminated{list[i].State.Terminated, list[i].LastTerminationState.Terminated} {
				if end == nil {
					continue
				}
				if is := h.instances[end.ContainerID]; is == nil || is.State != runtime.ContainerExited {
					end.ContainerID = ""
				}
			}
		}
	}
	return s
}

// removed records that a pod was deleted from the API.
func (c *checker) removed(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.pods[uid]
	if h == nil || h.deleted || h.last == nil {
		return
	}
	h.deleted = true
	c.graceLocked(h)
}

// graceLocked compares the last status of a pod with the behavior of its shape on TERM. It
// applies to pods that no fault affected and whose main container had time to install its
// signal handler.
func (c *checker) graceLocked(h *podHistory) {
	pod := h.last
	if h.shape == nil || h.shape.stopped < 0 || h.disturb > 0 || h.deletedAt.IsZero() {
		return
	}
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s v1.ContainerStatus) bool { return s.Name == "main" })
	if i < 0 {
		return
	}
	end := pod.Status.ContainerStatuses[i].State.Terminated
	if end == nil || end.Reason == "ContainerStatusUnknown" {
		return
	}
	if end.ExitCode == 255 && end.Reason == "Unknown" && c.lostLocked(end.StartedAt.Time) {
		c.tolerated["a containerd that was killed does not know how a container ended meanwhile (255, Unknown)"]++
		return
	}
	if end.StartedAt.IsZero() || h.deletedAt.Sub(end.StartedAt.Time) < 3*time.Second {
		return // its signal handler may not have been installed
	}
	c.checkLocked(gracePeriodGiven, end.ExitCode == h.shape.stopped, h.name, "it has %d s, needs less, and was ended with %d (%s)", h.shape.grace, end.ExitCode, end.Reason)
	if h.shape.stopped == 137 {
		had := end.FinishedAt.Sub(h.deletedAt)
		least := time.Duration(h.shape.grace-2) * time.Second // both are whole seconds
		c.checkLocked(gracePeriodGiven, had >= least, h.name, "it has %d s, and was killed after %v", h.shape.grace, had)
	}
}

func rank(phase v1.PodPhase) int {
	return slices.Index([]v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed}, phase)
}

func terminal(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }

func ready(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// containers returns the statuses of all containers of a pod.
func containers(pod *v1.Pod) []v1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// runtimePrefix is the name of the runtime in the IDs of containers in statuses.
const runtimePrefix = "containerd://"

// bareID returns the ID of a container without the name of the runtime.
func bareID(id string) string {
	return strings.TrimPrefix(id, runtimePrefix)
}
