package chaos

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// versionsOf returns the versions of the components.
func (w *world) versionsOf(ctx context.Context) []string {
	versions := []string{"containerd " + w.daemon.Version, "Kubernetes " + strings.TrimPrefix(lab.KubernetesVersion, "v")}
	if v, err := w.cri.Version(ctx, ""); err == nil {
		versions = append(versions, "CRI "+v.RuntimeApiVersion)
	}
	return append(versions, markdown.Machine())
}

// A recovery is how long it took after faults of one kind.
type recovery struct {
	kind     string
	times    []time.Duration // sorted
	never    int
	p50, p99 time.Duration
}

// recoveries returns one of each kind, in the order of kinds.
func (r result) recoveries() (all []recovery) {
	by := map[string]*recovery{}
	for kind, times := range r.later {
		by[kind] = &recovery{kind: kind, times: slices.Clone(times)}
	}
	for _, o := range r.outcomes {
		k := o.round.kind()
		if r.later[k] != nil {
			continue
		}
		if by[k] == nil {
			by[k] = &recovery{kind: k}
		}
		if o.recovery < 0 {
			by[k].never++
		} else {
			by[k].times = append(by[k].times, o.recovery)
		}
	}
	for _, name := range append(kindNames(), "two at once") {
		if one := by[name]; one != nil {
			slices.Sort(one.times)
			one.p50, one.p99 = quantile(one.times, 50), quantile(one.times, 99)
			all = append(all, *one)
		}
	}
	return all
}

// quantile returns the least time that so many percent are not above.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// summary prints the recoveries and the invariants as tables.
func (r result) summary(out io.Writer) {
	fmt.Fprintf(out, "\n%-22s %6s %9s %9s\n", "fault", "rounds", "p50", "p99")
	for _, rec := range r.recoveries() {
		fmt.Fprintf(out, "%-22s %6d %9s %9s\n", rec.kind, len(rec.times)+rec.never, seconds(rec.p50), seconds(rec.p99))
	}
	fmt.Fprintf(out, "\n%-24s %8s %10s\n", "invariant", "checked", "violations")
	for _, l := range invariants() {
		fmt.Fprintf(out, "%-24s %8d %10d\n", l.name, r.checker.checked[l.name], r.violations(l.name))
	}
	for _, what := range slices.Sorted(maps.Keys(r.checker.tolerated)) {
		fmt.Fprintf(out, "tolerated, %d times: %s\n", r.checker.tolerated[what], what)
	}
	fmt.Fprintln(out)
}

func (r result) violations(name string) (n int) {
	for _, v := range r.checker.broken() {
		if v.invariant == name {
			n++
		}
	}
	return n
}

// markdown is the report.
func (r result) markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	o := r.options
	p("# Reliability: a run of chaos\n")
	p("Made by `go run ./test chaos` on %s. The complete node (examples/kubelet) is the only node of a real cluster, on a real containerd; %d pods of %d shapes run on it, pods are deleted and created continuously, and faults are injected, one at a time or two at once. The invariants of the simulation (package sim) that can be observed from outside are checked on observations that do not pass through the agent.\n",
		r.began.Format(time.DateOnly), o.pods, len(shapes))
	p("    go run ./test chaos --seed %d --pods %d --duration %v%s --report docs/reliability.md\n", o.seed, o.pods, o.duration, map[bool]string{true: " --once"}[o.once])
	p("| | |\n|---|---|")
	p("| with | %s |", strings.Join(r.versions, ", "))
	p("| took | %s; %d rounds, %d faults, %d pods |", r.took.Round(time.Second), len(r.outcomes), r.faults(), len(r.checker.pods))
	p("| until all pods were running for the first time | %s |", seconds(r.setup))
	p("| until nothing remained at the end, including logs | %s |", seconds(r.cleared))
	p("| invariants checked | %d times |", r.checker.total())
	p("| **violations** | **%d** |\n", len(r.checker.broken()))

	p("## Faults and recovery times\n")
	p("The time from the end of the fault until, simultaneously, each pod was in its desired state, its status matched the runtime, agent and node were healthy, and nothing remained of pods that were deleted meanwhile. It includes the back-off of at least 10 s of containers that a fault has terminated, up to 4 s of grace periods, and a quarter of a second for the observation. With few rounds of a kind, p99 is the maximum.\n")
	p("| fault | description | rounds | p50 | p99 |\n|---|---|---|---|---|")
	for _, rec := range r.recoveries() {
		text := "two of the others, the second during the first"
		if k := kindNamed(rec.kind); k != nil {
			text = k.text
		}
		p("| %s | %s | %d | %s | %s |", rec.kind, text, len(rec.times)+rec.never, seconds(rec.p50), seconds(rec.p99))
	}
	p("\n## Invariants\n")
	p("| invariant | description | checked | violations |\n|---|---|---|---|")
	for _, l := range invariants() {
		p("| %s | %s | %d | %d |", l.name, l.description, r.checker.checked[l.name], r.violations(l.name))
	}
	if broken := r.checker.broken(); len(broken) > 0 {
		p("\n### Violations\n")
		for _, v := range broken {
			p("- %s, %s", v.at.Format(time.TimeOnly), v)
		}
	}
	if len(r.checker.tolerated) > 0 {
		p("\n## Tolerated\n")
		for _, what := range slices.Sorted(maps.Keys(r.checker.tolerated)) {
			p("- %d times: %s", r.checker.tolerated[what], strings.ReplaceAll(what, "\n", " "))
		}
	}
	p("\n## The rounds\n")
	p("| at | fault | lasted until | recovered after | |\n|---|---|---|---|---|")
	for _, out := range r.outcomes {
		well := seconds(out.recovery)
		if out.recovery < 0 {
			well = "**never**"
		}
		p("| %s | %s | %s | %s | %s |", seconds(out.began.Sub(r.began)), faultsInWords(out.round), seconds(out.lifted), well, strings.ReplaceAll(strings.Join(out.notes, "; "), "|", "/"))
	}
	return b.String()
}

func faultsInWords(r round) string {
	var words []string
	for _, s := range r.steps {
		if s.fault != "" {
			words = append(words, s.String())
		}
	}
	return strings.Join(words, "; ")
}

func (r result) faults() (n int) {
	for _, o := range r.outcomes {
		n += len(slices.DeleteFunc(o.round.faults(), func(name string) bool { return name == nothing }))
	}
	return n
}
