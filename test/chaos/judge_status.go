package chaos

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// status processes a pod of the API. It reports whether its phase is terminal for the first
// time.
func (j *judge) status(pod *v1.Pod) (ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.historyLocked(string(pod.UID))
	before := l.last
	l.last, l.name, l.shape = pod, pod.Name, shapeNamed(pod.Labels["shape"])
	j.names[pod.Name] = l
	if l.shape == nil {
		return false // not a pod of the run
	}
	// A terminated pod is deleted again, with another time and no grace period.
	if grace := pod.DeletionGracePeriodSeconds; l.toldAt.IsZero() && grace != nil && *grace > 0 {
		l.toldAt = pod.DeletionTimestamp.Add(-time.Duration(*grace) * time.Second)
	}
	if before != nil {
		was, is := before.Status.Phase, pod.Status.Phase
		// A pod that loses its sandbox runs its init containers again and is pending meanwhile.
		back := rank(is) < rank(was) && l.disturb == 0
		j.checkLocked(terminalPhaseFinal, !back && (!terminal(was) || was == is), l.name, "%s after %s", is, was)
	}
	for _, c := range containers(pod) {
		j.container(l, c)
	}
	if !terminal(pod.Status.Phase) {
		return false
	}
	j.checkLocked(notReady, !ready(pod), l.name, "%s and Ready", pod.Status.Phase)
	if ended = l.terminalSince.IsZero(); ended {
		l.terminalSince = j.now()
	}
	return ended
}

// container processes the status of a container.
func (j *judge) container(l *podHistory, c v1.ContainerStatus) {
	count, told := l.counts[c.Name]
	j.checkLocked(reportedRestartCount, !told || c.RestartCount >= count, l.name, "%s went from %d to %d", c.Name, count, c.RestartCount)
	l.counts[c.Name] = max(count, c.RestartCount)

	is, was := l.instances[bareID(c.ContainerID)], l.instances[l.shown[c.Name]]
	if is != nil && was != nil {
		j.checkLocked(reportedInstanceNewer, !is.created.Before(was.created), l.name, "%s shows attempt %d after attempt %d", c.Name, is.attempt, was.attempt)
	}
	if is != nil {
		l.shown[c.Name] = is.id
	}
	for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		// With these reasons the code is a guess, because the exit was not observed.
		if end == nil || end.Reason == "ContainerStatusUnknown" {
			continue
		}
		if of := l.instances[bareID(end.ContainerID)]; of != nil && of.exited {
			j.checkLocked(exitCodesCorrect, of.code == end.ExitCode, l.name, "%s attempt %d exited with %d, and %d (%s) was reported", c.Name, of.attempt, of.code, end.ExitCode, end.Reason)
		}
	}
}

// removed records that a pod was deleted from the API.
func (j *judge) removed(uid string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.pods[uid]
	if l == nil || l.deleted || l.last == nil {
		return
	}
	l.deleted = true
	j.graceLocked(l)
}

// graceLocked compares the last status of a pod with the behavior of its shape on TERM. It
// applies to pods that no fault affected and whose main container had time to install its
// signal handler.
func (j *judge) graceLocked(l *podHistory) {
	pod := l.last
	if l.shape == nil || l.shape.stopped < 0 || l.disturb > 0 || l.toldAt.IsZero() {
		return
	}
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.Name == "main" })
	if i < 0 {
		return
	}
	end := pod.Status.ContainerStatuses[i].State.Terminated
	if end == nil || end.Reason == "ContainerStatusUnknown" {
		return
	}
	if end.ExitCode == 255 && end.Reason == "Unknown" && j.lostLocked(end.StartedAt.Time) {
		j.tolerated["a containerd that was killed does not know how a container ended meanwhile (255, Unknown)"]++
		return
	}
	if end.StartedAt.IsZero() || l.toldAt.Sub(end.StartedAt.Time) < 3*time.Second {
		return // its signal handler may not have been installed
	}
	j.checkLocked(gracePeriodGiven, end.ExitCode == l.shape.stopped, l.name, "it has %d s, needs less, and was ended with %d (%s)", l.shape.grace, end.ExitCode, end.Reason)
	if l.shape.stopped == 137 {
		had := end.FinishedAt.Sub(l.toldAt)
		least := time.Duration(l.shape.grace-2) * time.Second // both are whole seconds
		j.checkLocked(gracePeriodGiven, had >= least, l.name, "it has %d s, and was killed after %v", l.shape.grace, had)
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

// bareID returns the ID of a container without the name of the runtime.
func bareID(id string) string {
	_, bare, _ := strings.Cut(id, "://")
	return bare
}
