package sim

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

// Timeline shows the run to people: when containers ran in truth, what was told
// of them, what went wrong. Times are those since its start.
func (r *Report) Timeline() timeline.Timeline {
	start := time.Unix(0, 0).UTC()
	out := timeline.Timeline{From: start, Until: start.Add(r.Took)}
	type told struct {
		at     time.Time
		status v1.PodStatus
	}
	last := map[types.UID]told{}
	for i := range r.Trace {
		e := &r.Trace[i]
		at := start.Add(e.At)
		pod := r.podName(e)
		if e.Kind == Said {
			before := last[e.UID]
			last[e.UID] = told{at, *e.Status}
			for _, m := range timeline.Changes(pod, before.at, &before.status, at, e.Status) {
				switch m.What { // of these the truth is known
				case timeline.Running, timeline.Exited, timeline.Succeeded:
				default:
					m.At = at
					out.Marks = append(out.Marks, m)
				}
			}
			continue
		}
		if m, ok := markOf(e); ok {
			m.At, m.Pod = at, cmp.Or(m.Pod, pod)
			out.Marks = append(out.Marks, m)
		}
	}
	return out
}

// podName tells apart the pods that had one name, one after the other.
func (r *Report) podName(e *Entry) string {
	if e.UID == "" || string(e.UID) == e.Pod {
		return e.Pod
	}
	return fmt.Sprintf("%s (%s)", e.Pod, e.UID)
}

// markOf returns the mark of an entry, without its time and pod, if it is worth
// one.
func markOf(e *Entry) (timeline.Mark, bool) {
	m := timeline.Mark{What: timeline.Note}
	switch e.Kind {
	case Started:
		m.What, m.Container = timeline.Running, e.Container.Name
		if n := e.Container.RestartCount; n > 0 {
			m.Text = fmt.Sprint("restart ", n)
		}
	case Exited:
		m.What, m.Container = timeline.Exited, e.Container.Name
		if e.Container.ExitCode == 0 {
			m.What = timeline.Succeeded
		}
		m.Text = fmt.Sprintf("exit code %d, %s", e.Container.ExitCode, e.Container.Reason)
	case Deleting:
		m.What, m.Text = timeline.Kill, "deletion asked for"
	case KillBegan:
		m.What, m.Text = timeline.Kill, "KillPod"
		if e.Grace != nil {
			m.Text = fmt.Sprintf("KillPod, %d s of grace", *e.Grace)
		}
	case SaidDeleted:
		m.What = timeline.Gone
	case Called:
		if e.Err == "" {
			return m, false
		}
		m.What, m.Text = timeline.Fault, e.Call+": "+e.Err
	case AgentBegan, AgentDied:
		m.What, m.Text = timeline.Agent, fmt.Sprintf("%d %s", e.Agent, map[EntryKind]string{AgentBegan: "begins", AgentDied: "is killed"}[e.Kind])
	case StepTaken:
		m.Container = e.Step.Container
		m.Text = e.Step.String()
		if e.Step.Do == Add || e.Step.Do == Delete || e.Step.Do == Kill {
			return m, false // shown by what comes of it
		}
	case LawBroken:
		m.Text = fmt.Sprintf("LAW BROKEN: %s: %s", e.Broken.Law, e.Broken.What)
	default:
		return m, false
	}
	return m, true
}
