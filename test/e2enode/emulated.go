package e2enode

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// Results of the machine of modern are in the repository: to run all of these tests takes many hours.
const (
	emulatedFile   = "test/e2enode/emulated.tsv"
	emulatedReport = "docs/e2e-node-emulated.md"
)

//go:embed emulated.tsv
var emulatedText string

//go:embed emulated-differences.txt
var emulatedDifferences string

// emulated returns the results in the repository as of the build.
func emulated() history {
	h, err := parseResults(emulatedFile, emulatedText)
	if err != nil {
		panic(err) // a test reads the file
	}
	return h
}

// selectEmulated returns those of the tests that the flags select for a program in the machine of modern, given
// the results of earlier runs.
func (o options) selectEmulated(s subject, names []string, earlier results) (selected []string) {
	for _, name := range names {
		switch {
		case !o.focus.MatchString(title + " " + name):
		case o.missing && earlier.have(name, []subject{s}):
		case o.unmeasurable && reasons.Find(notMeasurable(), name) == nil:
		default:
			selected = append(selected, name)
		}
	}
	slices.Sort(selected)
	return selected
}

// merge adds the results of a run, a file, to those in the repository, writes the report, and returns the exit code.
func merge(run string, differences []reasons.Reason, out io.Writer) int {
	say := cli.NewPrinter(out)
	all, err := readResults(emulatedFile)
	if err != nil {
		say("failed to read earlier results (run this in the repository): %v", err)
		return 2
	}
	found, err := readResults(run)
	if err != nil {
		say("failed to read the results of the run: %v", err)
		return 2
	}
	all.add(found)
	if err := all.write(emulatedFile); err != nil {
		say("%v", err)
		return 2
	}
	r := newReport(all, nil, differences)
	r.elsewhere = elsewhere(all, notMeasurable())
	r.unexplored = leftOut(found.names(), all, notMeasurable(), notEmulated())
	if err := markdown.Write(emulatedReport, r.emulatedMarkdown(), say); err != nil {
		say("%v", err)
		return 2
	}
	fmt.Fprint(out, r.summary())
	unused := unusedReasons(all.names(), r, nil, differences)
	for _, problem := range unused {
		fmt.Fprintln(out, problem)
	}
	if len(r.unexplained)+len(unused) > 0 {
		return 1
	}
	return 0
}

// elsewhere returns the number of tests that only the machine of modern can run and that it has run with both programs.
func elsewhere(h history, notMeasurable []reasons.Reason) (n int) {
	for name, of := range h.tests {
		if compared(of) && reasons.Find(notMeasurable, name) != nil {
			n++
		}
	}
	return n
}

// leftOut returns how many of the tests that only the machine of modern can run have no result of both programs yet,
// by reason.
func leftOut(names []string, h history, notMeasurable, notEmulated []reasons.Reason) []excluded {
	out := map[string]int{}
	for _, name := range names {
		of := h.tests[name]
		if reasons.Find(notMeasurable, name) == nil || compared(of) {
			continue
		}
		switch why := reasons.Find(notEmulated, name); {
		case why != nil:
			out[why.Why]++
		case of[kubelet].is == skipped:
			out["The test skips itself there with the kubelet."]++
		default:
			out["Not run for time."]++
		}
	}
	return sortExcluded(out)
}

// add adds the tests of a run that were run with one of the programs.
func (h *history) add(run history) {
	if run.latest != "" {
		h.latest = run.latest
	}
	for name, of := range run.tests {
		for s, r := range of {
			if h.tests[name] == nil {
				h.tests[name] = map[subject]result{}
			}
			h.tests[name][s] = r
		}
	}
}

const emulatedIntroduction = `# The kubelet's own tests in an emulated machine with cgroup v2

Made by ` + "`go run ./test e2enode --merge FILE`" + `, most recently with a run on %s. [e2e-node.md](e2e-node.md) has the tests that were run on a machine with cgroup v1 and without systemd. These ran in the machine of ` + "`go run ./test modern`" + `: Debian's kernel with cgroup v2, systemd and logind, 4 to 8 processors in two NUMA nodes where the test requires them, and swap and huge pages likewise. It has no hardware virtualization and is 13 to 42 times slower. Most others ran with one processor and a time of their own (` + "`--virtual-time`" + `): a nanosecond for each instruction, and none while all wait.

| | |
|---|---|
| suite and kubelet | Kubernetes %s |
| run with both | %d |
| of these, not measurable on the other machine | %d |
| passed by the kubelet | %d |
| passed by the agent | %d |
| passed by the agent, of those that the kubelet passes | %s |

    go run ./test modern --drivers systemd e2enode --focus 'Pods should run'          # one test
    go run ./test modern --drivers systemd --cpus 8 e2enode --focus 'CPU Manager'
    go run ./test modern --drivers systemd --cpus 1 --numa 1 --virtual-time e2enode --focus 'MemoryQoS'
    go run ./test e2enode --merge /tmp/modern/systemd/results.tsv

Results of several runs are merged: the latest result of each test with each program counts. Tests that skip themselves with the kubelet are not counted as run.

## By label

A test with several labels is counted for each of them.

| label | run | kubelet | agent |
|---|---|---|---|
`

// emulatedMarkdown returns the report of the machine of modern as a document.
func (r report) emulatedMarkdown() string {
	var b strings.Builder
	t := r.total
	fmt.Fprintf(&b, emulatedIntroduction, r.latest, strings.TrimPrefix(lab.KubernetesVersion, "v"), t.run, r.elsewhere, t.kubelet, t.agent, t.share())
	row := func(label string, t tally) {
		if t.run > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", label, t.run, t.kubelet, t.agent)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(r.byLabel)) {
		row(label, r.byLabel[label])
	}
	row("**all tests**", t)
	r.sections(&b, "emulated-differences.txt")
	b.WriteString("\n## Not run there\n\nThe tests that are not measurable on the other machine, and have no result of both programs here. " +
		"[not-emulated.txt](../test/e2enode/not-emulated.txt) selects those that are not run for other reasons than time.\n\n| tests | reason |\n|---|---|\n")
	for _, e := range r.unexplored {
		fmt.Fprintf(&b, "| %d | %s |\n", e.tests, markdown.Cell(e.why))
	}
	return b.String()
}
