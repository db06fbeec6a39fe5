package sim

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

// Timeline returns a drawing of the run: the containers that ran, the reported statuses
// and the faults. Times are relative to the start of the run, which is the Unix epoch.
func (r *Report) Timeline() timeline.Timeline {
	start := time.Unix(0, 0).UTC()
	out := timeline.Timeline{From: start, Until: start.Add(r.Duration)}
	last := map[types.UID]timeline.Report{}
	for i := range r.Trace {
		e := &r.Trace[i]
		at := start.Add(e.At)
		pod := r.podName(e)
		if e.Kind == StatusUpdated {
			previous, next := last[e.UID], timeline.Report{At: at, Status: *e.Status}
			last[e.UID] = next
			for _, m := range timeline.Changes(pod, previous, next) {
				switch m.Kind { // drawn from the changes of the runtime instead
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

// podName returns a name that distinguishes pods that had the same name one after the
// other.
func (r *Report) podName(e *Entry) string {
	if e.UID == "" || string(e.UID) == e.Pod {
		return e.Pod
	}
	return fmt.Sprintf("%s (%s)", e.Pod, e.UID)
}

// markOf returns the mark of an entry, without its time and pod; false if it is not
// drawn.
func markOf(e *Entry) (timeline.Mark, bool) {
	m := timeline.Mark{Kind: timeline.Note}
	switch e.Kind {
	case Started:
		m.Kind, m.Container = timeline.Running, e.Container.Name
		if n := e.Container.RestartCount; n > 0 {
			m.Text = fmt.Sprint("restart ", n)
		}
	case Exited:
		m.Kind, m.Container = timeline.Exited, e.Container.Name
		if e.Container.ExitCode == 0 {
			m.Kind = timeline.Succeeded
		}
		m.Text = fmt.Sprintf("exit code %d, %s", e.Container.ExitCode, e.Container.Reason)
	case DeletionRequested:
		m.Kind, m.Text = timeline.Kill, "deletion requested"
	case KillPodCalled:
		m.Kind, m.Text = timeline.Kill, "KillPod"
		if e.Grace != nil {
			m.Text = fmt.Sprintf("KillPod, grace period %d s", *e.Grace)
		}
	case DeletePodCalled:
		m.Kind = timeline.Deleted
	case Called:
		if e.Err == "" {
			return m, false
		}
		m.Kind, m.Text = timeline.Fault, e.Call+": "+e.Err
	case AgentStarted, AgentKilled:
		m.Kind, m.Text = timeline.Agent, fmt.Sprintf("%d %s", e.Agent, map[EntryKind]string{AgentStarted: "started", AgentKilled: "killed"}[e.Kind])
	case StepTaken:
		m.Container = e.Step.Container
		m.Text = e.Step.String()
		if e.Step.Do == Add || e.Step.Do == Delete || e.Step.Do == Kill {
			return m, false // its effects are drawn
		}
	case InvariantViolated:
		m.Text = fmt.Sprintf("INVARIANT VIOLATED: %s: %s", e.Violation.Invariant, e.Violation.Message)
	default:
		return m, false
	}
	return m, true
}
