package timeline

import (
	"slices"
	"time"
)

// A Timeline is what happened to pods, to be shown to people: as a chart in
// text, as a list, as an SVG picture. It is made of neutral marks, so that it
// shows a simulated pod and one of a real node alike: fill it by hand, or have
// a [Recorder] make it of the statuses that a node reports.
type Timeline struct {
	// Marks in any order; those of one instant are shown in the order given.
	Marks []Mark

	// From and Until bound what is shown. Zero: the first mark and the last
	// one. What lasts beyond Until is cut there.
	From, Until time.Time
}

// A Mark is one thing that happened at one time.
type Mark struct {
	At        time.Time
	Pod       string // namespace/name, or whatever names it
	Container string // empty: the pod itself
	What      What
	Text      string // details in words: a reason, an exit code, a phase; see What
}

// What kind of thing a [Mark] is. Those of the first group begin a state which
// lasts until the next one of that lane, those of the second are moments. Any
// other value, the empty one too, is a moment that is shown as a note.
type What string

// States: a container's first, then the pod's.
const (
	Waiting   What = "waiting"   // Text: the reason (ContainerCreating)
	BackOff   What = "back-off"  // Text: the reason (CrashLoopBackOff, ImagePullBackOff)
	Running   What = "running"   // and not ready
	Ready     What = "ready"     // running and ready
	Exited    What = "exited"    // Text: how (exit code 1, Error)
	Succeeded What = "succeeded" // exited with 0

	Phase    What = "phase"   // Text: the phase (Pending)
	PodReady What = "ready+"  // condition Ready became true
	Unready  What = "ready-"  // and false again
	Gone     What = "deleted" // nothing is left of the pod
)

// Moments.
const (
	Kill      What = "kill"      // was asked to stop; Text: why
	Probe     What = "probe"     // a probe failed; Text: which
	Condition What = "condition" // of the pod changed; Text: Initialized=True
	Fault     What = "fault"     // something was made to fail; Text: what
	Agent     What = "agent"     // the agent was killed, or started again
	Note      What = "note"
)

// Of returns the part of the timeline that is of one pod, and of the node as a
// whole (marks that name no pod). Its bounds are those of the whole, so that
// the pictures of two pods can be laid side by side.
func (t Timeline) Of(pod string) Timeline {
	marks, from, until := t.ordered()
	marks = slices.DeleteFunc(marks, func(m Mark) bool { return m.Pod != pod && m.Pod != "" })
	return Timeline{Marks: marks, From: from, Until: until}
}

// Pods returns the pods it is about, in the order of their first marks.
func (t Timeline) Pods() []string {
	var pods []string
	seen := map[string]bool{"": true}
	marks, _, _ := t.ordered()
	for _, m := range marks {
		if !seen[m.Pod] {
			seen[m.Pod] = true
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

// ordered returns the marks by time, and the bounds.
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
