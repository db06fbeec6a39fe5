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

// A Recorder is a status.StatusSink that makes a [Timeline] of the statuses it
// is told, of a simulated node or of a real one (status.Tee puts it beside the
// sink that counts). The zero value is ready; all methods may be called at any
// time, and none fails. It keeps every mark: this is for hours of some pods,
// not for months of a node.
type Recorder struct {
	mu    sync.Mutex // guards the fields below
	marks []Mark
	pods  map[types.UID]told
	asked map[types.UID]bool // to stop
}

// told is what a pod's last status was, and when.
type told struct {
	at     time.Time
	status v1.PodStatus
}

// UpdatePodStatus adds marks of what is new in status.
func (r *Recorder) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods, r.asked = map[types.UID]told{}, map[types.UID]bool{}
	}
	now, name := time.Now(), pod.Namespace+"/"+pod.Name
	old := r.pods[pod.UID]
	if pod.DeletionTimestamp != nil && !r.asked[pod.UID] {
		r.asked[pod.UID] = true
		r.marks = append(r.marks, Mark{At: now, Pod: name, What: Kill, Text: "deletion asked for"})
	}
	r.marks = append(r.marks, Changes(name, old.at, &old.status, now, &status)...)
	r.pods[pod.UID] = told{now, *status.DeepCopy()}
	return nil
}

// DeletePod adds the mark that nothing of the pod is left.
func (r *Recorder) DeletePod(_ context.Context, pod *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, Mark{At: time.Now(), Pod: pod.Namespace + "/" + pod.Name, What: Gone})
	delete(r.pods, pod.UID)
	delete(r.asked, pod.UID)
	return nil
}

// Add adds a mark of something that no status says: a fault, a restart of the
// agent, a failed probe. The zero At is now.
func (r *Recorder) Add(m Mark) {
	if m.At.IsZero() {
		m.At = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, m)
}

// Timeline returns what was recorded so far, up to now.
func (r *Recorder) Timeline() Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Timeline{Marks: slices.Clone(r.marks), Until: time.Now()}
}

// A clock says when what a status shows has happened.
type clock struct {
	before time.Time // when the status before it was told
	now    time.Time
}

// when returns the time at which a status says that something happened. Statuses
// have whole seconds: what is less than one ago is said to be now. What was
// not told before has not happened before, so that marks keep their order.
func (c clock) when(at time.Time) time.Time {
	switch {
	case at.IsZero() || c.now.Sub(at) < time.Second:
		return c.now
	case at.Before(c.before):
		return c.before
	}
	return at
}

// Changes returns the marks of what is different between two statuses of a pod,
// of which old was told at that time (the zero status: never) and new is told
// now. What the status dates itself (starts, exits) is marked at its own time
// if that lies between the two.
func Changes(pod string, told time.Time, old *v1.PodStatus, now time.Time, new *v1.PodStatus) []Mark {
	var out []Mark
	clock := clock{told, now}
	if new.Phase != old.Phase {
		why := strings.TrimSuffix(" ("+new.Reason+")", " ()")
		out = append(out, Mark{At: now, Pod: pod, What: Phase, Text: string(new.Phase) + why})
	}
	for _, c := range new.Conditions {
		i := slices.IndexFunc(old.Conditions, func(o v1.PodCondition) bool { return o.Type == c.Type })
		was := v1.ConditionFalse
		if i >= 0 {
			was = old.Conditions[i].Status
		}
		m := Mark{At: now, Pod: pod, What: Condition, Text: fmt.Sprintf("%s=%s", c.Type, c.Status)}
		switch {
		case c.Status == was:
			continue
		case c.Type == v1.PodReady && c.Status == v1.ConditionTrue:
			m.What, m.Text = PodReady, ""
		case c.Type == v1.PodReady:
			m.What, m.Text = Unready, c.Reason
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
			for _, m := range marksOfContainer(clock, was, c) {
				m.Pod, m.Container = pod, c.Name
				out = append(out, m)
			}
		}
	}
	return out
}

func marksOfContainer(clock clock, old, new *v1.ContainerStatus) []Mark {
	var out []Mark
	// A run that began or ended between two statuses is told by the last
	// termination alone.
	if t := new.LastTerminationState.Terminated; t != nil && !knows(old, t) {
		if old.State.Running == nil || !old.State.Running.StartedAt.Equal(&t.StartedAt) {
			out = append(out, Mark{At: clock.when(t.StartedAt.Time), What: Running})
		}
		out = append(out, exit(t, clock))
	}
	switch s := new.State; {
	case s.Running != nil:
		at := clock.now
		if old.State.Running == nil || !old.State.Running.StartedAt.Equal(&s.Running.StartedAt) {
			at = clock.when(s.Running.StartedAt.Time)
			out = append(out, Mark{At: at, What: Running, Text: again(new)})
		} else if old.Ready == new.Ready {
			break
		}
		if new.Ready {
			out = append(out, Mark{At: clock.now, What: Ready})
		} else if at.Equal(clock.now) && old.Ready {
			out = append(out, Mark{At: clock.now, What: Running, Text: "not ready"})
		}
	case s.Terminated != nil:
		if !knows(old, s.Terminated) {
			if old.State.Running == nil && !s.Terminated.StartedAt.IsZero() {
				out = append(out, Mark{At: clock.when(s.Terminated.StartedAt.Time), What: Running, Text: again(new)})
			}
			out = append(out, exit(s.Terminated, clock))
		}
	case s.Waiting != nil:
		if old.State.Waiting != nil && old.State.Waiting.Reason == s.Waiting.Reason {
			break
		}
		m := Mark{At: clock.now, What: Waiting, Text: s.Waiting.Reason}
		if strings.HasSuffix(s.Waiting.Reason, "BackOff") {
			m.What = BackOff
		}
		out = append(out, m)
	}
	return out
}

// knows reports whether the status shows this exit, as its state or its last, or
// a later one: that exit was its last in its time.
func knows(c *v1.ContainerStatus, t *v1.ContainerStateTerminated) bool {
	covers := func(o *v1.ContainerStateTerminated) bool {
		return o != nil && (o.ContainerID == t.ContainerID || t.FinishedAt.Before(&o.FinishedAt))
	}
	return covers(c.State.Terminated) || covers(c.LastTerminationState.Terminated)
}

func again(c *v1.ContainerStatus) string {
	if c.RestartCount == 0 {
		return ""
	}
	return fmt.Sprint("restart ", c.RestartCount)
}

func exit(t *v1.ContainerStateTerminated, clock clock) Mark {
	m := Mark{At: clock.when(t.FinishedAt.Time), What: Exited, Text: fmt.Sprintf("exit code %d, %s", t.ExitCode, cmp.Or(t.Reason, "no reason"))}
	if t.ExitCode == 0 {
		m.What = Succeeded
	}
	return m
}
