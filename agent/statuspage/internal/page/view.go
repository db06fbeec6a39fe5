package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of lists. The number of omitted entries is shown.
const (
	mostPods    = 500
	mostProbes  = 200
	mostVolumes = 200
	mostImages  = 200
	mostEvents  = 200
	mostInPod   = 10  // containers of a pod in the list of pods, and with logs
	mostInLine  = 400 // characters of a line of a log
)

// A view is the data of a template.
type view struct {
	*Node
	Title   string
	Base    string // relative path to the node's page
	Refresh int    // seconds; 0: disabled
	Every   int    // default of Refresh
	Pod     *Pod   // nil: the page of the node
	Links   []string
	Logs    []logEnd // of Pod
	Missing string   // description of the object that was not found

	named map[string]int // number of pods by namespace and name
}

// A logEnd is the end of the log of a container.
type logEnd struct {
	Container, Path string
	Lines           []string
	Problem         string // why there are no lines
}

func viewOf(n *Node) view {
	v := view{Node: n, Title: title(n), named: map[string]int{}}
	for i := range n.Pods {
		v.named[n.Pods[i].Namespace+"/"+n.Pods[i].Name]++
	}
	return v
}

// A tally is the number of pods of a category.
type tally struct {
	Category category
	Count    int
	Words    string
}

var categoryNames = map[category]string{failing: "failing", terminating: "terminating", waiting: "not ready", healthy: "ready", done: "completed"}

// Tallies returns the number of pods by category.
func (v view) Tallies() (all []tally) {
	counts := map[category]int{}
	for i := range v.Node.Pods {
		counts[v.Node.Pods[i].category()]++
	}
	for _, m := range categories {
		if counts[m] > 0 {
			all = append(all, tally{m, counts[m], categoryNames[m]})
		}
	}
	return all
}

// Unwell returns the number of failing checks.
func (v view) Unwell() (n int) {
	for _, c := range v.Checks {
		if c.Err != "" {
			n++
		}
	}
	return n
}

// Shown returns the pods that are listed.
func (v view) Shown() []Pod { return firstOf(sorted(v.Node.Pods), mostPods) }

// A probeRow is a probe with its pod and container.
type probeRow struct {
	Pod       *Pod
	Container string
	Probe
}

// ProbeRows returns the probes of all pods, those that failed first.
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

// last returns the outcome of the last attempt; a probe without one is sorted to the end.
func (p Probe) last() Outcome {
	if len(p.Runs) == 0 {
		return Broken + 1
	}
	return p.Runs[len(p.Runs)-1].Outcome
}

// Latest returns the last attempt; nil if there is none.
func (p Probe) Latest() *Run {
	if len(p.Runs) == 0 {
		return nil
	}
	return &p.Runs[len(p.Runs)-1]
}

// Words summarizes the attempts.
func (p Probe) Words() string {
	var n [3]int
	for _, r := range p.Runs {
		n[r.Outcome]++
	}
	text := fmt.Sprintf("%d of the last %d attempts passed", n[Passed], len(p.Runs))
	if n[Failed] > 0 {
		text += fmt.Sprintf(", %d failed", n[Failed])
	}
	if n[Broken] > 0 {
		text += fmt.Sprintf(", %d could not run", n[Broken])
	}
	return text
}

// A volumeRow is a volume with its pod.
type volumeRow struct {
	Pod *Pod
	Volume
}

// VolumeRows returns the volumes of all pods, those that failed first.
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

// firstOf returns the first n elements at most.
func firstOf[T any](all []T, n int) []T { return all[:min(len(all), n)] }

// href returns the relative path of a pod's page. It contains the UID if two pods have the
// same name, or the name is not valid in a path.
func (v view) href(p *Pod) string {
	if v.named[p.Namespace+"/"+p.Name] != 1 || !plain(p.Namespace) || !plain(p.Name) {
		return v.Base + "pod?uid=" + url.QueryEscape(p.UID)
	}
	return v.Base + "pod/" + url.PathEscape(p.Namespace) + "/" + url.PathEscape(p.Name)
}

// plain reports whether a name is valid in Kubernetes.
func plain(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return strings.Trim(name, ".") != ""
}

// EventsOf returns the events of the page's pod.
func (v view) EventsOf() (events []Event) {
	for _, e := range v.Node.Events {
		if e.UID != "" && e.UID == v.Pod.UID {
			events = append(events, e)
		}
	}
	return events
}

// Ago returns the time from t to the state of the page.
func (v view) Ago(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return age(v.At.Sub(t))
}

// In returns the time from the state of the page to t.
func (v view) In(t time.Time) string { return age(t.Sub(v.At)) }
