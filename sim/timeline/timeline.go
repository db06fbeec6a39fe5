package timeline

import (
	"slices"
	"time"
)

// A Timeline is a history of pods that can be written as a chart in text, as a list and
// as an SVG image. Its marks are the same for simulated pods and those of a real node.
// The caller creates them, or a [Recorder] derives them from the statuses that a node
// reports.
type Timeline struct {
	// Marks in any order; those of one instant are drawn in the given order.
	Marks []Mark

	// From and Until are the bounds of the drawing. Zero means the first and the last
	// mark. A state that lasts beyond Until is cut there.
	From, Until time.Time
}

// A Mark is one event in a Timeline.
type Mark struct {
	At        time.Time
	Pod       string // namespace/name, or another name; empty: the node
	Container string // empty: the pod itself
	Kind      Kind
	Text      string // details: a reason, an exit code, a phase; see Kind
}

// Kind is the kind of a [Mark]. Kinds of the first group begin a state that lasts until
// the next one of the same pod or container; those of the second group have no
// duration. Any other value, also the empty one, is drawn as a note.
type Kind string

// States of containers, and then of pods.
const (
	Waiting   Kind = "waiting"   // Text: the reason (ContainerCreating)
	BackOff   Kind = "back-off"  // Text: the reason (CrashLoopBackOff, ImagePullBackOff)
	Running   Kind = "running"   // and not ready
	Ready     Kind = "ready"     // running and ready
	Exited    Kind = "exited"    // Text: exit code and reason (exit code 1, Error)
	Succeeded Kind = "succeeded" // exited with 0

	Phase    Kind = "phase"   // Text: the phase (Pending)
	PodReady Kind = "ready+"  // condition Ready became true
	Unready  Kind = "ready-"  // condition Ready became false
	Deleted  Kind = "deleted" // the pod was deleted, after its cleanup
)

// Events without a duration.
const (
	Kill      Kind = "kill"      // a stop was requested; Text: the reason
	Probe     Kind = "probe"     // a probe failed; Text: which one
	Condition Kind = "condition" // a condition of the pod changed; Text: Initialized=True
	Fault     Kind = "fault"     // a fault was injected; Text: its description
	Agent     Kind = "agent"     // the agent was killed or started
	Note      Kind = "note"
)

// ForPod returns the marks of one pod and of the node as a whole (marks without a pod).
// The bounds are those of t, so that the drawings of two pods are comparable.
func (t Timeline) ForPod(pod string) Timeline {
	marks, from, until := t.ordered()
	marks = slices.DeleteFunc(marks, func(m Mark) bool { return m.Pod != pod && m.Pod != "" })
	return Timeline{Marks: marks, From: from, Until: until}
}

// Pods returns the names of the pods, in the order of their first marks.
func (t Timeline) Pods() []string {
	var pods []string
	listed := map[string]bool{"": true}
	marks, _, _ := t.ordered()
	for _, m := range marks {
		if !listed[m.Pod] {
			listed[m.Pod] = true
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

// ordered returns the marks sorted by time, and the bounds.
func (t Timeline) ordered() (marks []Mark, from, until time.Time) {
	marks = slices.SortedStableFunc(slices.Values(t.Marks), func(a, b Mark) int { return a.At.Compare(b.At) })
	from, until = t.From, t.Until
	if len(marks) > 0 {
		if from.IsZero() {
			from = marks[0].At
		}
		if until.IsZero() {
			until = marks[len(marks)-1].At
		}
	}
	if until.Before(from) {
		until = from
	}
	return marks, from, until
}
