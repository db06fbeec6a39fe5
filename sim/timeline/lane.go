package timeline

import (
	"slices"
	"time"
)

// A lane is one row of a drawing: a container, a pod (its phase), or the node.
type lane struct {
	pod, container string
	spans          []span
	ready          []span // only of a pod: the times at which condition Ready is true
	moments        []Mark // events without a duration, and exits
}

// A span is a state with its begin and end.
type span struct {
	from, until time.Time
	kind        Kind
	text        string
}

// lanes returns the rows: first the node if it has marks, then each pod followed by its
// containers, in the order of their first marks. Spans and moments are within the
// bounds.
func (t Timeline) lanes() (rows []*lane, from, until time.Time) {
	marks, from, until := t.ordered()
	// The lanes by pod, its own first; the node is the pod with an empty name.
	lanes, pods := map[string][]*lane{}, []string{}
	byName := map[[2]string]*lane{}
	find := func(pod, container string) *lane {
		name := [2]string{pod, container}
		if l := byName[name]; l != nil {
			return l
		}
		if len(lanes[pod]) == 0 {
			pods = append(pods, pod)
		}
		l := &lane{pod: pod, container: container}
		byName[name] = l
		lanes[pod] = append(lanes[pod], l)
		return l
	}
	for _, m := range marks {
		if m.Container != "" {
			find(m.Pod, "")
		}
		find(m.Pod, m.Container).add(m)
		if m.Kind == Deleted && m.Container == "" {
			for _, l := range lanes[m.Pod] { // the containers were removed with it
				l.spans = end(l.spans, m.At)
			}
		}
	}
	rows = lanes[""]
	for _, pod := range pods {
		if pod != "" {
			rows = append(rows, lanes[pod]...)
		}
	}
	for _, l := range rows {
		l.spans = clip(l.spans, from, until)
		l.ready = clip(l.ready, from, until)
		l.moments = slices.DeleteFunc(l.moments, func(m Mark) bool { return m.At.Before(from) || m.At.After(until) })
	}
	return rows, from, until
}

// add adds the next mark to the lane.
func (l *lane) add(m Mark) {
	switch m.Kind {
	case Waiting, BackOff, Running, Ready, Phase:
		l.spans = begin(l.spans, m)
	case Exited, Succeeded:
		l.spans = begin(l.spans, m)
		l.moments = append(l.moments, m)
	case PodReady:
		l.ready = begin(l.ready, m)
	case Unready:
		l.ready = end(l.ready, m.At)
	case Deleted:
		l.spans, l.ready = end(l.spans, m.At), end(l.ready, m.At)
		l.moments = append(l.moments, m)
	default:
		l.moments = append(l.moments, m)
	}
}

// begin ends the open span and begins that of the mark, unless both are equal.
func begin(spans []span, m Mark) []span {
	if n := len(spans); n > 0 && spans[n-1].until.IsZero() && spans[n-1].kind == m.Kind && spans[n-1].text == m.Text {
		return spans
	}
	return append(end(spans, m.At), span{from: m.At, kind: m.Kind, text: m.Text})
}

// end ends the open span, if there is one. An open span has a zero until.
func end(spans []span, at time.Time) []span {
	if n := len(spans); n > 0 && spans[n-1].until.IsZero() {
		spans[n-1].until = at
	}
	return spans
}

// clip clips spans to the bounds and removes those outside.
func clip(spans []span, from, until time.Time) []span {
	var out []span
	for _, s := range spans {
		if s.until.IsZero() || s.until.After(until) {
			s.until = until
		}
		if s.from.Before(from) {
			s.from = from
		}
		if !s.until.Before(s.from) {
			out = append(out, s)
		}
	}
	return out
}

// steps are the distances that ticks of the axis may have.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	2 * 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// tick returns the smallest step that fits at most n times into d.
func tick(d time.Duration, n int) time.Duration {
	for _, s := range steps {
		if d <= s*time.Duration(n) {
			return s
		}
	}
	return max(d/time.Duration(n), 1)
}
