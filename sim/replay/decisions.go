package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Decisions are the calls of the CRI that changed pods and succeeded: those that pull
// images, and that create, start and stop sandboxes and containers. The first call of
// several equal ones counts, and a stop of what does not run does not.
type Decisions struct {
	Recorded int // by the recorded program
	Replayed int // by the replayed agent
	Equal    int // by both, within Options.Tolerance
	Shifted  int // by both, at other times

	// Differences are the others, in the order of their times.
	Differences []*Divergence
}

// String returns the numbers in one line.
func (d *Decisions) String() string {
	both := d.Equal + d.Shifted
	return fmt.Sprintf("%d recorded decisions, of which the replay makes %d (%.1f %%), %d of them at other times; it makes %d others",
		d.Recorded, both, 100*float64(both)/float64(max(d.Recorded, 1)), d.Shifted, d.Replayed-both)
}

// decides are the methods of Decisions.
var decides = map[string]bool{
	"RunPodSandbox": true, "StopPodSandbox": true, "CreateContainer": true, "StartContainer": true, "StopContainer": true, "PullImage": true,
}

// A decision is one of Decisions.
type decision struct {
	at   time.Duration
	pod  types.UID
	text string
}

// decide adds a call of the replayed agent that has succeeded. The caller holds mu.
func (m *model) decide(method, action string, began time.Duration, f fields) {
	if _, known := m.decisions[action]; known || !decides[method] {
		return
	}
	m.decisions[action] = m.newDecision(method, began, m.podOf(f), m.items[f.ContainerID+f.PodSandboxID], f)
}

// podOf returns the pod of a call of the replayed agent. The caller holds mu.
func (m *model) podOf(f fields) types.UID {
	if t := m.items[f.ContainerID+f.PodSandboxID]; t != nil {
		return t.pod
	}
	return m.w.x.podOf(f)
}

func (m *model) newDecision(method string, at time.Duration, pod types.UID, t *item, f fields) decision {
	text := method
	switch {
	case method == "PullImage" && f.Image != nil:
		text += " " + f.Image.Image
	case f.Config != nil:
		text = strings.TrimSpace(fmt.Sprintf("%s %s", method, containerName(method, f))) + fmt.Sprintf(", attempt %d", f.Config.Metadata.Attempt)
	case t != nil:
		text = strings.TrimSpace(method+" "+t.name) + fmt.Sprintf(", attempt %d", t.attempt)
	}
	return decision{at, pod, text}
}

// isRunning reports whether a call stops something that runs; true for other calls. The caller holds mu.
func (m *model) isRunning(method string, f fields) bool {
	switch t := m.items[f.ContainerID+f.PodSandboxID]; {
	case t == nil:
		return true
	case method == "StopContainer":
		return t.status.State == runtime.ContainerRunning
	case method == "StopPodSandbox":
		return t.ready
	}
	return true
}

// recordedDecisions returns the decisions of the recording by their actions.
func (m *model) recordedDecisions() map[string]decision {
	out := map[string]decision{}
	for _, c := range m.w.x.calls {
		if !decides[c.method] || c.err != nil || c.hangs || c.end > m.w.x.end {
			continue
		}
		f := parse(c.request)
		t := m.w.x.things[f.ContainerID+f.PodSandboxID]
		if c.method == "StopContainer" && t != nil && t.exited != nil && t.exit <= c.begin {
			continue
		}
		if c.method == "StopPodSandbox" && t != nil {
			if died, ok := t.died(); ok && died <= c.begin {
				continue
			}
		}
		action := m.action(c.method, f)
		if _, known := out[action]; !known {
			var of *item
			if t != nil {
				of = &item{thing: t}
			}
			out[action] = m.newDecision(c.method, c.begin, m.w.x.podOf(f), of, f)
		}
	}
	return out
}

// compareDecisions compares the decisions until a time before the end of the recording: later ones may be in progress.
func (m *model) compareDecisions() *Decisions {
	recorded, tolerance := m.recordedDecisions(), m.w.tolerance
	until := m.w.x.end - tolerance
	out := &Decisions{}
	differ := func(d *Divergence) {
		d.Pod, d.What = m.w.outputs.pods[d.UID], "calls"
		out.Differences = append(out.Differences, d)
	}
	all := maps.Clone(recorded)
	maps.Copy(all, m.decisions)
	for action := range all {
		was, ok := recorded[action]
		is, made := m.decisions[action]
		if (!ok || was.at > until) && (!made || is.at > until) {
			continue
		}
		if ok {
			out.Recorded++
		}
		if made {
			out.Replayed++
		}
		late := is.at - was.at
		if ok && made && late.Abs() > tolerance {
			out.Shifted++
		}
		switch {
		case !made:
			differ(&Divergence{At: was.at, UID: was.pod, Recorded: was.text, Reason: "not replayed"})
		case !ok:
			differ(&Divergence{At: is.at, UID: is.pod, Replayed: is.text, Reason: "not in the recording"})
		case late > tolerance:
			differ(&Divergence{At: was.at, UID: was.pod, Recorded: was.text, Replayed: is.text, Reason: fmt.Sprintf("%v later than recorded", late.Round(time.Millisecond))})
		case -late > tolerance:
			differ(&Divergence{At: is.at, UID: was.pod, Recorded: was.text, Replayed: is.text, Reason: fmt.Sprintf("%v earlier than recorded", (-late).Round(time.Millisecond))})
		default:
			out.Equal++
		}
	}
	slices.SortFunc(out.Differences, func(a, b *Divergence) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Recorded+a.Replayed, b.Recorded+b.Replayed))
	})
	return out
}
