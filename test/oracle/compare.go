package oracle

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim"
)

// A Difference is a property of a pod in which two kubelets differ in the same scenario.
type Difference struct {
	Pod, Kind     string
	First, Second string
	Class         string // one of the classes
	Why           string // the violated invariant, or what permits both
}

// The classes of differences.
const (
	firstWrong   = "first wrong"
	secondWrong  = "second wrong"
	bothWrong    = "both wrong"
	bothAllowed  = "both allowed"
	unclassified = "not classified"
)

// allowed are the kinds of differences that no source forbids, with the source that
// permits both. A kind without an entry is classified by violations only.
var allowed = map[string]string{
	"phases":            "API conventions: clients must not depend on intermediate states; what follows at once may be published together",
	"sandboxes":         "CRI: the runtime is not observed continuously; a sandbox may be replaced once more after a fault",
	"instances":         "Pod lifecycle: restarts are separated by a back-off, whose phase depends on when an exit was observed",
	"restarts":          "API reference, ContainerStatus.restartCount: kubelets make an effort to increment it; it follows the instances",
	"events":            "Events are best effort (API reference, Event), and their reasons are not an API",
	"exit code":         "the scenario's steps are in real time: a container may exit by itself before it is stopped, or after",
	"written by others": "the kubelet may replace what another client has written before a watcher gets it",

	"reason": "API reference, PodStatus.reason: a brief message for people",
}

// A life is what is compared of a pod.
type life map[string]string

// lives returns the lives of the pods of a recording, by the names of the pods.
func lives(run *Recording) map[string]life {
	type facts struct {
		marked                string
		phases, events, exits []string
		instances             map[string]int
		sandboxes             int
		restarts              map[string]int32
		last                  *v1.Pod
		deleted, removed      bool
	}
	all := map[string]*facts{}
	of := func(pod string) *facts {
		if all[pod] == nil {
			all[pod] = &facts{instances: map[string]int{}, restarts: map[string]int32{}}
		}
		return all[pod]
	}
	podNames := podsOf(run)
	settled, lied, hung := false, false, false
	for _, r := range run.Records {
		switch {
		case r.Step != nil:
			switch s, err := parseStep(*r.Step); {
			case err != nil:
			case s.Do == sim.Remove:
				of(s.Pod).removed = true
			case s.Do == sim.Fault && s.Calls != apiCalls:
				lied, hung = lied || s.Kind == sim.Stale, hung || s.Kind == sim.Hung
			}
		case r.Mark != nil && *r.Mark == markSettled:
			settled = true
		case settled:
		case r.Pod != nil:
			f, s := of(r.Pod.Pod.Name), &r.Pod.Pod.Status
			if n := len(f.phases); n == 0 || f.phases[n-1] != string(s.Phase) {
				f.phases = append(f.phases, string(s.Phase))
			}
			if f.last, f.deleted = r.Pod.Pod, r.Pod.Deleted; s.Reason == "Lost" {
				f.marked = "yes"
			}
			for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
				f.restarts[c.Name] = c.RestartCount
			}
		case r.Event != nil && podNames[r.Event.Pod] != "":
			f := of(podNames[r.Event.Pod])
			f.events = append(f.events, r.Event.Reason)
		case r.Change != nil && podNames[r.Change.Pod] != "":
			f := of(podNames[r.Change.Pod])
			switch {
			case r.Change.Container == "" && r.Change.To == "ready":
				f.sandboxes++
			case r.Change.To == "running":
				f.instances[r.Change.Container]++
			case r.Change.To == "exited":
				f.exits = append(f.exits, fmt.Sprintf("%s#%d:%d", r.Change.Container, r.Change.Attempt, r.Change.ExitCode))
			}
		}
	}
	out := map[string]life{}
	for name, f := range all {
		if f.last == nil {
			continue
		}
		slices.Sort(f.events)
		slices.Sort(f.exits)
		out[name] = life{
			"final phase": string(f.last.Status.Phase), "deleted": fmt.Sprint(f.deleted), "reason": f.last.Status.Reason,
			"phases": strings.Join(f.phases, " "), "events": strings.Join(slices.Compact(f.events), " "), "exit code": strings.Join(f.exits, " "),
			"instances": fmt.Sprint(f.instances), "sandboxes": fmt.Sprint(f.sandboxes), "restarts": fmt.Sprint(f.restarts),
			"written by others": f.marked,
		}
		switch s := &f.last.Status; {
		case endsAtDeadline(f.last):
			out[name][excuse] = "API reference, metav1.Time: times in a status have a resolution of a second, and a container ended within two of the deadline"
		case f.deleted && f.last.DeletionGracePeriodSeconds != nil && *f.last.DeletionGracePeriodSeconds == 0 && !terminal(s.Phase):
			out[name][excuse] = "Pod lifecycle, Forced Pod termination: the object is removed at once, with the status that it has at that moment"
		case f.removed:
			out[name][excuse] = "an operator removed the containers: their exit is known to a kubelet that had observed it"
		case lied:
			out[name][excuse] = "the runtime reported an earlier state as the present one"
		case hung && !terminal(s.Phase):
			out[name][excuse] = "KubeletConfiguration, runtimeRequestTimeout: a call of the runtime may hang for longer than the scenario lasts"
		case f.last.DeletionTimestamp != nil && f.last.Spec.ActiveDeadlineSeconds != nil:
			out[name][excuse] = "no source says whether the deadline of a pod applies while it is deleted"
		}
	}
	return out
}

// excuse is, in a life, why its final phase may be another one in the same scenario; it is not compared.
const excuse = "excuse"

// endsAtDeadline reports whether a container of a pod has ended so near to its deadline
// that the times of a status do not tell which was first.
func endsAtDeadline(pod *v1.Pod) bool {
	s := &pod.Status
	if pod.Spec.ActiveDeadlineSeconds == nil || s.StartTime == nil {
		return false
	}
	deadline := s.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	return slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.State.Terminated != nil && deadline.Sub(c.State.Terminated.FinishedAt.Time).Abs() < deadlineResolution
	})
}

// compareRuns returns the differences of two recordings of one scenario, in order of pods and kinds. A
// difference of a pod for which a kubelet has violated an invariant, and the other has not, is that kubelet's.
func compareRuns(first, second *Recording) ([]Difference, error) {
	violatedBy := func(run *Recording) (map[string]string, error) {
		violations, err := check(run)
		out := map[string]string{}
		for _, v := range violations {
			if out[v.Pod] == "" {
				out[v.Pod] = v.Invariant
			}
		}
		return out, err
	}
	a, err := violatedBy(first)
	if err != nil {
		return nil, err
	}
	b, err := violatedBy(second)
	if err != nil {
		return nil, err
	}
	var out []Difference
	one, two := lives(first), lives(second)
	for _, pod := range slices.Sorted(maps.Keys(one)) {
		for _, kind := range slices.Sorted(maps.Keys(one[pod])) {
			if two[pod] == nil || kind == excuse || one[pod][kind] == two[pod][kind] {
				continue
			}
			d := Difference{Pod: pod, Kind: kind, First: one[pod][kind], Second: two[pod][kind]}
			switch {
			case a[pod] != "" && b[pod] != "":
				d.Class, d.Why = bothWrong, a[pod]+", "+b[pod]
			case a[pod] != "":
				d.Class, d.Why = firstWrong, a[pod]
			case b[pod] != "":
				d.Class, d.Why = secondWrong, b[pod]
			case allowed[kind] != "":
				d.Class, d.Why = bothAllowed, allowed[kind]
			case one[pod]["written by others"]+two[pod]["written by others"] != "":
				d.Class, d.Why = bothAllowed, "another client has set the phase, before or after the kubelet"
			case one[pod]["exit code"] != two[pod]["exit code"] || one[pod]["instances"] != two[pod]["instances"]:
				d.Class, d.Why = bothAllowed, "its containers ran at other times, and ended otherwise: "+allowed["exit code"]
			case kind == "final phase" && one[pod][excuse]+two[pod][excuse] != "":
				d.Class, d.Why = bothAllowed, cmp.Or(one[pod][excuse], two[pod][excuse])
			default:
				d.Class = unclassified
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// compareCommand compares recordings of the same scenarios by two kubelets: two files, or
// two directories of fuzz --all.
func compareCommand(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	all := fs.Bool("all", false, "print each difference, and not only those that are not classified")
	files, err := parse(fs, args, 2, out)
	if err != nil {
		return err
	}
	pairs := [][2]string{{files[0], files[1]}}
	if info, err := os.Stat(files[0]); err != nil {
		return err
	} else if info.IsDir() {
		pairs = nil
		found, err := filepath.Glob(filepath.Join(files[0], "*.json.gz"))
		if err != nil {
			return err
		}
		for _, file := range found {
			if other := filepath.Join(files[1], filepath.Base(file)); exists(other) {
				pairs = append(pairs, [2]string{file, other})
			}
		}
	}
	counts := map[[2]string]int{}
	pods := 0
	for _, pair := range pairs {
		first, err := loadRecording(pair[0])
		if err != nil {
			return err
		}
		second, err := loadRecording(pair[1])
		if err != nil {
			return err
		}
		if first.Scenario != second.Scenario {
			return fmt.Errorf("%s and %s are of different scenarios", pair[0], pair[1])
		}
		differences, err := compareRuns(first, second)
		if err != nil {
			return err
		}
		pods += len(podsOf(first))
		for _, d := range differences {
			counts[[2]string{d.Kind, d.Class}]++
			if *all || d.Class == unclassified {
				fmt.Fprintf(out, "%s %s: %s: %s: %q, %q (%s)\n", filepath.Base(pair[0]), d.Pod, d.Kind, d.Class, d.First, d.Second, d.Why)
			}
		}
	}
	fmt.Fprintf(out, "%d scenarios, %d pods\n\n| difference | first wrong | second wrong | both wrong | both allowed | not classified |\n|---|---|---|---|---|---|\n", len(pairs), pods)
	kinds := map[string]bool{}
	for key := range counts {
		kinds[key[0]] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(out, "| %s |", kind)
		for _, class := range []string{firstWrong, secondWrong, bothWrong, bothAllowed, unclassified} {
			fmt.Fprintf(out, " %d |", counts[[2]string{kind, class}])
		}
		fmt.Fprintln(out)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
