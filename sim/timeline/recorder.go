package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Recorder is a status.Sink that derives a [Timeline] from the statuses of a
// simulated or real node; status.Tee combines it with the actual sink. The zero value is
// ready for use. Its methods are safe for concurrent use and never return an error. It
// keeps every mark in memory: it is for hours of some pods, not for months of a node.
type Recorder struct {
	mu                sync.Mutex // guards the fields below
	marks             []Mark
	last              map[types.UID]Report
	deletionRequested map[types.UID]bool // to stop
}

// A Report is a status of a pod and the time at which it was reported.
type Report struct {
	At     time.Time
	Status v1.PodStatus
}

// UpdatePodStatus adds marks for the differences from the previous status.
func (r *Recorder) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last, r.deletionRequested = map[types.UID]Report{}, map[types.UID]bool{}
	}
	now, name := time.Now(), pod.Namespace+"/"+pod.Name
	old, reported := r.last[pod.UID], Report{now, *status.DeepCopy()}
	if pod.DeletionTimestamp != nil && !r.deletionRequested[pod.UID] {
		r.deletionRequested[pod.UID] = true
		r.marks = append(r.marks, Mark{At: now, Pod: name, Kind: Kill, Text: "deletion requested"})
	}
	r.marks = append(r.marks, Changes(name, old, reported)...)
	r.last[pod.UID] = reported
	return nil
}

// DeletePod adds a mark of kind Deleted.
func (r *Recorder) DeletePod(_ context.Context, pod *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, Mark{At: time.Now(), Pod: pod.Namespace + "/" + pod.Name, Kind: Deleted})
	delete(r.last, pod.UID)
	delete(r.deletionRequested, pod.UID)
	return nil
}

// Add adds a mark for an event that statuses do not contain: a fault, a restart of the
// agent, a failed probe. A zero At means now.
func (r *Recorder) Add(m Mark) {
	if m.At.IsZero() {
		m.At = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, m)
}

// Timeline returns the marks recorded so far; it ends now.
func (r *Recorder) Timeline() Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Timeline{Marks: slices.Clone(r.marks), Until: time.Now()}
}

// A clock determines the times of events from those in a status.
type clock struct {
	previous time.Time // of the previous status
	now      time.Time
}

// eventTime returns the time of an event that a status dates at. Times in statuses are
// whole seconds, so that an event less than a second ago is dated now. An event is not
// dated before the previous status, which did not contain it, so that marks keep their
// order.
func (c clock) eventTime(at time.Time) time.Time {
	switch {
	case at.IsZero() || c.now.Sub(at) < time.Second:
		return c.now
	case at.Before(c.previous):
		return c.previous
	}
	return at
}

// Changes returns marks for the differences between two reports of a pod. For the first one,
// last is the zero Report.
// Starts and exits, which have times in the status, are marked at these times if they
// are between the two.
func Changes(pod string, last, next Report) []Mark {
	var out []Mark
	old, new, now, clock := &last.Status, &next.Status, next.At, clock{last.At, next.At}
	if new.Phase != old.Phase {
		why := strings.TrimSuffix(" ("+new.Reason+")", " ()")
		out = append(out, Mark{At: now, Pod: pod, Kind: Phase, Text: string(new.Phase) + why})
	}
	for _, c := range new.Conditions {
		i := slices.IndexFunc(old.Conditions, func(o v1.PodCondition) bool { return o.Type == c.Type })
		was := v1.ConditionFalse
		if i >= 0 {
			was = old.Conditions[i].Status
		}
		m := Mark{At: now, Pod: pod, Kind: Condition, Text: fmt.Sprintf("%s=%s", c.Type, c.Status)}
		switch {
		case c.Status == was:
			continue
		case c.Type == v1.PodReady && c.Status == v1.ConditionTrue:
			m.Kind, m.Text = PodReady, ""
		case c.Type == v1.PodReady:
			m.Kind, m.Text = Unready, c.Reason
		}
		out = append(out, m)
	}
	for _, list := range [][2][]v1.ContainerStatus{
		{old.InitContainerStatuses, new.InitContainerStatuses},
		{old.ContainerStatuses, new.ContainerStatuses},
		{old.EphemeralContainerStatuses, new.EphemeralContainerStatuses},
	} {
		for i := range list[1] {
			c := &list[1][i]
			was := &v1.ContainerStatus{}
			if at := slices.IndexFunc(list[0], func(o v1.ContainerStatus) bool { return o.Name == c.Name }); at >= 0 {
				was = &list[0][at]
			}
			for _, m := range containerMarks(clock, was, c) {
				m.Pod, m.Container = pod, c.Name
				out = append(out, m)
			}
		}
	}
	return out
}

func containerMarks(clock clock, old, new *v1.ContainerStatus) []Mark {
	var out []Mark
	// An instance that started or exited between two statuses is only in the last
	// termination state.
	if t := new.LastTerminationState.Terminated; t != nil && !includesExit(old, t) {
		if old.State.Running == nil || !old.State.Running.StartedAt.Equal(&t.StartedAt) {
			out = append(out, Mark{At: clock.eventTime(t.StartedAt.Time), Kind: Running})
		}
		out = append(out, exitMark(t, clock))
	}
	switch s := new.State; {
	case s.Running != nil:
		at := clock.now
		if old.State.Running == nil || !old.State.Running.StartedAt.Equal(&s.Running.StartedAt) {
			at = clock.eventTime(s.Running.StartedAt.Time)
			out = append(out, Mark{At: at, Kind: Running, Text: restartText(new)})
		} else if old.Ready == new.Ready {
			break
		}
		if new.Ready {
			out = append(out, Mark{At: clock.now, Kind: Ready})
		} else if at.Equal(clock.now) && old.Ready {
			out = append(out, Mark{At: clock.now, Kind: Running, Text: "not ready"})
		}
	case s.Terminated != nil:
		if !includesExit(old, s.Terminated) {
			if old.State.Running == nil && !s.Terminated.StartedAt.IsZero() {
				out = append(out, Mark{At: clock.eventTime(s.Terminated.StartedAt.Time), Kind: Running, Text: restartText(new)})
			}
			out = append(out, exitMark(s.Terminated, clock))
		}
	case s.Waiting != nil:
		if old.State.Waiting != nil && old.State.Waiting.Reason == s.Waiting.Reason {
			break
		}
		m := Mark{At: clock.now, Kind: Waiting, Text: s.Waiting.Reason}
		if strings.HasSuffix(s.Waiting.Reason, "BackOff") {
			m.Kind = BackOff
		}
		out = append(out, m)
	}
	return out
}

// includesExit reports whether the status contains this exit or a later one, as state or
// last termination state.
func includesExit(c *v1.ContainerStatus, t *v1.ContainerStateTerminated) bool {
	covers := func(o *v1.ContainerStateTerminated) bool {
		return o != nil && (o.ContainerID == t.ContainerID || t.FinishedAt.Before(&o.FinishedAt))
	}
	return covers(c.State.Terminated) || covers(c.LastTerminationState.Terminated)
}

func restartText(c *v1.ContainerStatus) string {
	if c.RestartCount == 0 {
		return ""
	}
	return fmt.Sprint("restart ", c.RestartCount)
}

func exitMark(t *v1.ContainerStateTerminated, clock clock) Mark {
	m := Mark{At: clock.eventTime(t.FinishedAt.Time), Kind: Exited, Text: fmt.Sprintf("exit code %d, %s", t.ExitCode, cmp.Or(t.Reason, "no reason"))}
	if t.ExitCode == 0 {
		m.Kind = Succeeded
	}
	return m
}
