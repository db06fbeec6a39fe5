package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// How much a page lists; what is more is counted in words.
const (
	mostPods    = 500
	mostProbes  = 200
	mostVolumes = 200
	mostImages  = 200
	mostEvents  = 200
	mostInPod   = 10 // containers, in the list of pods
)

// A view is what a template is given.
type view struct {
	*Node
	Title   string
	Base    string // relative path to the node's page
	Refresh int    // seconds; 0: not at all
	Every   int    // seconds, if it is refreshed
	Pod     *Pod   // nil: the page is the node's
	Links   []string
	Missing string // what was asked for and is not there

	named map[string]int // how many pods have a name
}

func viewOf(n *Node) view {
	v := view{Node: n, Title: title(n), named: map[string]int{}}
	for i := range n.Pods {
		v.named[n.Pods[i].Namespace+"/"+n.Pods[i].Name]++
	}
	return v
}

// A tally is how many pods are in one mood.
type tally struct {
	Mood  mood
	Count int
	Words string
}

var moodWords = map[mood]string{trouble: "in trouble", ending: "ending", waiting: "not ready yet", well: "well", done: "done"}

// Tallies counts the pods by how they are.
func (v view) Tallies() (all []tally) {
	counts := map[mood]int{}
	for i := range v.Node.Pods {
		counts[v.Node.Pods[i].mood()]++
	}
	for _, m := range moods {
		if counts[m] > 0 {
			all = append(all, tally{m, counts[m], moodWords[m]})
		}
	}
	return all
}

// Unwell are the checks that fail.
func (v view) Unwell() (n int) {
	for _, c := range v.Checks {
		if c.Err != "" {
			n++
		}
	}
	return n
}

// Shown are the pods that are listed.
func (v view) Shown() []Pod { return firstOf(sorted(v.Node.Pods), mostPods) }

// A probeRow is a probe with whose it is.
type probeRow struct {
	Pod       *Pod
	Container string
	Probe
}

// ProbeRows are the probes of all pods, those that fail first.
func (v view) ProbeRows() (rows []probeRow) {
	pods := sorted(v.Node.Pods)
	for i := range pods {
		for _, c := range pods[i].Containers {
			for _, p := range c.Probes {
				rows = append(rows, probeRow{&pods[i], c.Name, p})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b probeRow) int { return int(a.last()) - int(b.last()) })
	return rows
}

// last is what the last run came to; one that never ran comes last.
func (p Probe) last() Outcome {
	if len(p.Runs) == 0 {
		return Broken + 1
	}
	return p.Runs[len(p.Runs)-1].Outcome
}

// Latest is the last run; nil: there was none.
func (p Probe) Latest() *Run {
	if len(p.Runs) == 0 {
		return nil
	}
	return &p.Runs[len(p.Runs)-1]
}

// Words says what the runs came to.
func (p Probe) Words() string {
	var n [3]int
	for _, r := range p.Runs {
		n[r.Outcome]++
	}
	text := fmt.Sprintf("of the last %d runs %d passed", len(p.Runs), n[Passed])
	if n[Failed] > 0 {
		text += fmt.Sprintf(", %d failed", n[Failed])
	}
	if n[Broken] > 0 {
		text += fmt.Sprintf(", %d could not run", n[Broken])
	}
	return text
}

// A volumeRow is a volume with whose it is.
type volumeRow struct {
	Pod *Pod
	Volume
}

// VolumeRows are the volumes of all pods, those in trouble first.
func (v view) VolumeRows() (rows []volumeRow) {
	pods := sorted(v.Node.Pods)
	for i := range pods {
		for _, vol := range pods[i].Volumes {
			rows = append(rows, volumeRow{&pods[i], vol})
		}
	}
	slices.SortStableFunc(rows, func(a, b volumeRow) int { return strings.Compare(b.rank(), a.rank()) })
	return rows
}

func (v Volume) rank() string {
	switch {
	case v.Err != "":
		return "2"
	case v.Doing != "":
		return "1"
	}
	return "0"
}

// firstOf returns at most n of them.
func firstOf[T any](all []T, n int) []T { return all[:min(len(all), n)] }

// href is the path of a pod's page, from the node's. Two pods may have one name for
// a while, and a name may be nothing that a path can hold: then the UID tells.
func (v view) href(p *Pod) string {
	if v.named[p.Namespace+"/"+p.Name] != 1 || !plain(p.Namespace) || !plain(p.Name) {
		return v.Base + "pod?uid=" + url.QueryEscape(p.UID)
	}
	return v.Base + "pod/" + url.PathEscape(p.Namespace) + "/" + url.PathEscape(p.Name)
}

// plain reports whether a name is one that Kubernetes allows.
func plain(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return strings.Trim(name, ".") != ""
}

// EventsOf are those about the page's pod.
func (v view) EventsOf() (events []Event) {
	for _, e := range v.Node.Events {
		if e.UID != "" && e.UID == v.Pod.UID {
			events = append(events, e)
		}
	}
	return events
}

// Ago says how long ago something was, when the page was made.
func (v view) Ago(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return age(v.At.Sub(t))
}

// In says how long it is to something.
func (v view) In(t time.Time) string { return age(t.Sub(v.At)) }
