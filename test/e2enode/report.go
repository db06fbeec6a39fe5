package e2enode

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// A report compares the results of the two programs.
type report struct {
	latest     string // see history
	total      tally
	byLabel    map[string]tally
	unexplored []excluded // not measurable
	explained  []difference
	// unexplained are differences without a reason.
	unexplained []difference
	ours        []difference // passed by the agent only
	neither     []difference // failed with both
	elsewhere   int          // see the function
}

// A tally counts tests.
type tally struct {
	tests, notMeasurable int
	run                  int // with both programs, and skipped by neither
	kubelet, agent       int // passed, of those
	both                 int // passed by the agent, of those that the kubelet passes
}

func (t *tally) add(o tally) {
	t.tests += o.tests
	t.notMeasurable += o.notMeasurable
	t.run += o.run
	t.kubelet += o.kubelet
	t.agent += o.agent
	t.both += o.both
}

// conformance is the label of tests that each node must pass.
const conformance = "NodeConformance"

// without returns the tally of the tests that o does not count.
func (t tally) without(o tally) tally {
	return tally{tests: t.tests - o.tests, notMeasurable: t.notMeasurable - o.notMeasurable, run: t.run - o.run,
		kubelet: t.kubelet - o.kubelet, agent: t.agent - o.agent, both: t.both - o.both}
}

// share is the number of tests that the agent passes, of those that the kubelet passes.
func (t tally) share() string {
	if t.kubelet == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.1f %%)", t.both, t.kubelet, 100*float64(t.both)/float64(t.kubelet))
}

// A difference is a test with different outcomes.
type difference struct {
	name           string
	kubelet, agent result
	why            string
}

// excluded are tests that are not run for one reason.
type excluded struct {
	why   string
	tests int
}

func newReport(h history, notMeasurable, explained []reasons.Reason) report {
	r := report{latest: h.latest, byLabel: map[string]tally{}}
	out := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(h.tests)) {
		k, a := h.tests[name][kubelet], h.tests[name][agent]
		one := tally{tests: 1}
		if by := reasons.Find(notMeasurable, name); by != nil {
			one.notMeasurable = 1
			out[by.Why]++
		} else if measured(k) && measured(a) {
			one.run, one.kubelet, one.agent = 1, number(k.is == passed), number(a.is == passed)
			one.both = one.kubelet * one.agent
			r.compare(difference{name: name, kubelet: k, agent: a}, explained)
		} else if k.is == passed && a.is == skipped {
			one.run, one.kubelet = 1, 1
			r.compare(difference{name: name, kubelet: k, agent: a}, explained)
		}
		r.total.add(one)
		for _, label := range labels(name) {
			t := r.byLabel[label]
			t.add(one)
			r.byLabel[label] = t
		}
	}
	r.unexplored = sortExcluded(out)
	return r
}

// sortExcluded returns numbers of tests by their reasons, the highest first.
func sortExcluded(tests map[string]int) (out []excluded) {
	for why, n := range tests {
		out = append(out, excluded{why, n})
	}
	slices.SortFunc(out, func(a, b excluded) int { return cmp.Or(-cmp.Compare(a.tests, b.tests), strings.Compare(a.why, b.why)) })
	return out
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func measured(r result) bool { return r.is == passed || r.is == failed }

// compared reports whether a test has a result of both programs.
func compared(of map[subject]result) bool { return measured(of[kubelet]) && measured(of[agent]) }

// compare adds a test that was run with both programs to the lists that it belongs to.
func (r *report) compare(d difference, explained []reasons.Reason) {
	switch {
	case d.kubelet.is == passed && d.agent.is != passed:
		if by := reasons.Find(explained, d.name); by != nil && by.Why != "" {
			d.why = by.Why
			r.explained = append(r.explained, d)
		} else {
			r.unexplained = append(r.unexplained, d)
		}
	case d.agent.is == passed && d.kubelet.is != passed:
		r.ours = append(r.ours, d)
	case d.kubelet.is != passed:
		r.neither = append(r.neither, d)
	}
}

var label = regexp.MustCompile(`\[(NodeConformance|Conformance|Serial|Slow|Disruptive|Feature:\w+|FeatureGate:\w+)\]`)

// labels returns the labels of a test that the report counts, without duplicates, or "none".
func labels(name string) []string {
	var found []string
	for _, match := range label.FindAllStringSubmatch(name, -1) {
		if !slices.Contains(found, match[1]) {
			found = append(found, match[1])
		}
	}
	if len(found) == 0 {
		return []string{"none"}
	}
	return found
}

// summary is printed after a run.
func (r report) summary() string {
	var b strings.Builder
	for _, d := range r.unexplained {
		fmt.Fprintf(&b, "unexplained: %s\n    %s: %s\n", d.name, d.agent.is, d.agent.why)
	}
	fmt.Fprintf(&b, "%d tests run with both: the kubelet passes %d, the agent %d; %d explained differences, %d unexplained\n",
		r.total.run, r.total.kubelet, r.total.agent, len(r.explained), len(r.unexplained))
	return b.String()
}

const introduction = `# The kubelet's own tests: kubelet and agent side by side

Made by ` + "`bash .ci/run e2e-node`" + `, most recently on %s. Kubernetes tests the kubelet with test/e2e_node. Here that suite ran against a real kubelet and against the complete node (examples/kubelet) on the same machine.

| | |
|---|---|
| suite and kubelet | Kubernetes %s, %d tests |
| machine | cgroup v1, no systemd, no registry |
| run with both | %d |
| passed by the kubelet | %d |
| passed by the agent | %d |
| **passed by the kubelet and not by the agent** | **%d** |
| of the tests of node conformance, passed by the agent, of those that the kubelet passes | %s |
| of all others | %s |
| not measurable on this machine | %d |

    bash .ci/run e2e-node                          # node conformance, on Debian as root; builds what it needs
    KUBEPARTS_E2E_NODE='MirrorPod' bash .ci/run e2e-node
    KUBEPARTS_E2E_NODE='.' bash .ci/run e2e-node   # all tests that are measurable: several hours
    go run ./test e2enode --help

Several parts of the tests run at the same time, each in a lane: a kubelet or an agent, a containerd, an etcd and an API server in namespaces of their own for mounts, processes, the network and cgroups. Results of several runs are merged: the latest result of each test with each program counts. A test that fails is run again, alone; the second result counts, and is marked with an asterisk. Tests that neither program has run, and tests that skip themselves with the kubelet, are not counted as run.

The suite requires systemd to restart the kubelet. A stand-in of test/e2enode for sudo, systemd-run and systemctl starts, stops and restarts either program instead. The suite's images are those of the [conformance tests](node-conformance.md).

## By label

A test with several labels is counted for each of them.

| label | tests | not measurable | run | kubelet | agent |
|---|---|---|---|---|---|
`

const notMeasurableSection = `
## Not measurable here

[not-measurable.txt](../test/e2enode/not-measurable.txt) selects these tests by label or name. %d of them were run [in an emulated machine](e2e-node-emulated.md) with cgroup v2 and systemd.

| tests | reason |
|---|---|
`

// markdown returns the report as a document.
func (r report) markdown() string {
	var b strings.Builder
	t := r.total
	fmt.Fprintf(&b, introduction, r.latest, strings.TrimPrefix(lab.KubernetesVersion, "v"), t.tests,
		t.run, t.kubelet, t.agent, t.kubelet-t.both, r.byLabel[conformance].share(), t.without(r.byLabel[conformance]).share(), t.notMeasurable)
	row := func(label string, t tally) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", label, t.tests, t.notMeasurable, t.run, t.kubelet, t.agent)
	}
	for _, label := range slices.Sorted(maps.Keys(r.byLabel)) {
		row(label, r.byLabel[label])
	}
	row("**all tests**", t)
	r.sections(&b, "differences.txt")
	fmt.Fprintf(&b, notMeasurableSection, r.elsewhere)
	for _, e := range r.unexplored {
		fmt.Fprintf(&b, "| %d | %s |\n", e.tests, markdown.Cell(e.why))
	}
	return b.String()
}

// sections writes the tables of the tests that a program did not pass. list is the file of the reasons.
func (r report) sections(b *strings.Builder, list string) {
	section(b, "Differences", "Passed by the kubelet and not by the agent.", r.explained)
	section(b, "Differences without a reason", "These fail the step: mend the agent, or add the reason to ["+list+"](../test/e2enode/"+list+").", r.unexplained)
	section(b, "Passed by the agent only", "", r.ours)
	section(b, "Passed by neither", "Kubelet and agent fail on this machine, or the agent is not compared because the test fails with the kubelet.", r.neither)
}

// section writes a table of tests, if there are any.
func section(b *strings.Builder, title, text string, all []difference) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if text != "" {
		b.WriteString(text + "\n\n")
	}
	b.WriteString("| kubelet | agent | test |\n|---|---|---|\n")
	for _, d := range all {
		fmt.Fprintf(b, "| %s | %s | %s |\n", d.kubelet.mark(), d.agent.mark(), strings.Join(slices.DeleteFunc(
			[]string{markdown.Cell(d.name), markdown.Cell(d.why), message("kubelet", d.kubelet), message("agent", d.agent)}, func(s string) bool { return s == "" }), "<br>"))
	}
}

// mark returns the state, with an asterisk if it is of a second run.
func (r result) mark() string {
	if r.again {
		return string(r.is) + `\*`
	}
	return string(r.is)
}

func message(of string, r result) string {
	if r.why == "" {
		return ""
	}
	return of + ": " + markdown.Cell(oneLine(r.why))
}
