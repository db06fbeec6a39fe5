package oracle

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// A Result is the result of a drawn scenario.
type Result struct {
	Kubelet    string        `json:"kubelet"`
	Seed       uint64        `json:"seed"`
	Pods       int           `json:"pods"` // lives
	Faults     []string      `json:"faults,omitempty"`
	Records    int           `json:"records"`
	Took       time.Duration `json:"took"`
	Violations []Violation   `json:"violations,omitempty"`
	Stalled    bool          `json:"stalled,omitempty"` // the machine was too slow to check latencies
	Err        string        `json:"err,omitempty"`     // it was not played
}

// kept is the number of scenarios per invariant that fuzz keeps.
const kept = 4

// fuzzCommand plays drawn scenarios.
func fuzzCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	var o playOptions
	var size drawOptions
	o.flags(fs)
	size.flags(fs)
	lanes := fs.Int("lanes", 4, "`number` of kubelets at the same time")
	total := fs.Duration("for", 10*time.Minute, "`time` after which no scenario is begun")
	count := fs.Int("count", 0, "maximum `number` of scenarios; 0 means no limit")
	all := fs.Bool("all", false, "keep all recordings, for check, and not only some that violate an invariant")
	dir := fs.String("dir", "oracle-results", "`directory` for the results, and for scenarios that violate an invariant")
	if _, err := parse(fs, args, 0, out); err != nil {
		return err
	}
	if err := errors.Join(o.complete(), os.MkdirAll(*dir, 0o755)); err != nil {
		return err
	}
	results, err := os.OpenFile(filepath.Join(*dir, "results.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer results.Close()
	f := &fuzzer{o: o, size: size, dir: *dir, all: *all, out: json.NewEncoder(results), printf: cli.NewPrinter(out), kept: map[string]int{}, next: o.seed}
	end, last := time.Now().Add(*total), o.seed+uint64(*count)
	var wg sync.WaitGroup
	for range *lanes {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				seed := f.seed()
				if *count > 0 && seed >= last {
					return
				}
				f.play(ctx, seed)
			}
		})
	}
	wg.Wait()
	if f.err != nil {
		return f.err
	}
	if text := summary(f.results); text != "" {
		fmt.Fprint(out, text)
	}
	if len(f.kept) > 0 {
		return ErrViolated
	}
	return nil
}

// A fuzzer plays drawn scenarios.
type fuzzer struct {
	o      playOptions
	size   drawOptions
	dir    string
	all    bool
	printf func(format string, args ...any)

	mu      sync.Mutex
	next    uint64
	out     *json.Encoder
	kept    map[string]int // scenarios by invariant
	results []Result
	err     error // of writing
}

func (f *fuzzer) seed() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	return f.next - 1
}

// play plays the scenario of a seed, and writes its result.
func (f *fuzzer) play(ctx context.Context, seed uint64) {
	s := draw(seed, f.size)
	o := f.o
	o.seed = seed
	began := time.Now()
	run, err := playIsolated(ctx, s, o)
	r := Result{Seed: seed, Pods: s.Pods(), Faults: s.faultNames(), Took: time.Since(began)}
	if err == nil {
		r.Kubelet, r.Records, r.Stalled = run.Kubelet, len(run.Records), newView(run.Records).stalled
		r.Violations, err = check(run)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.Err = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = append(f.results, r)
	f.err = errors.Join(f.err, f.out.Encode(r))
	f.printf("seed %d: %d pods, %d violations %s%s", seed, r.Pods, len(r.Violations), strings.Join(names(r.Violations), " "), r.Err)
	fresh := f.all && run != nil
	for _, name := range names(r.Violations) {
		fresh = fresh || f.kept[name] < kept
		f.kept[name]++
	}
	if fresh {
		f.err = errors.Join(f.err, f.keep(s, run, r))
	}
}

// keep writes a scenario that violates an invariant, with what was recorded.
func (f *fuzzer) keep(s Scenario, run *Recording, r Result) error {
	var text strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&text, "# %s\n", v)
	}
	text.WriteString(s.String())
	base := filepath.Join(f.dir, fmt.Sprintf("seed-%d", r.Seed))
	return errors.Join(os.WriteFile(base+".txt", []byte(text.String()), 0o644), saveRecording(base+".json.gz", run))
}

// names returns the names of the violated invariants.
func names(violations []Violation) []string {
	set := map[string]bool{}
	for _, v := range violations {
		set[v.Invariant] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// summary returns the results as tables in Markdown: of the runs, and of the violations.
func summary(results []Result) string {
	type sums struct {
		scenarios, pods, records, stalled, failed int
		took                                      time.Duration
	}
	of, violations := map[string]*sums{}, map[string]map[string]int{}
	for _, r := range results {
		kubelet := cmp.Or(r.Kubelet, "not played")
		s := of[kubelet]
		if s == nil {
			s = new(sums)
			of[kubelet] = s
		}
		if r.Err != "" {
			s.failed++
			continue
		}
		s.scenarios++
		s.pods += r.Pods
		s.records += r.Records
		s.took += r.Took
		if r.Stalled {
			s.stalled++
		}
		for _, v := range r.Violations {
			if violations[v.Invariant] == nil {
				violations[v.Invariant] = map[string]int{}
			}
			violations[v.Invariant][kubelet]++
		}
	}
	kubelets := slices.Sorted(maps.Keys(of))
	var b strings.Builder
	b.WriteString("| kubelet | scenarios | lives of pods | records | mean time | too slow to check latencies | not played |\n|---|---|---|---|---|---|---|\n")
	for _, k := range kubelets {
		s := of[k]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %v | %d | %d |\n", k, s.scenarios, s.pods, s.records, (s.took / time.Duration(max(s.scenarios, 1))).Round(time.Second), s.stalled, s.failed)
	}
	fmt.Fprintf(&b, "\n| invariant | %s |\n|---%s|\n", strings.Join(kubelets, " | "), strings.Repeat("|---", len(kubelets)))
	for _, name := range slices.Sorted(maps.Keys(violations)) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, k := range kubelets {
			fmt.Fprintf(&b, " %d |", violations[name][k])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// summaryCommand prints the results of several runs of fuzz.
func summaryCommand(_ context.Context, args []string, out io.Writer) error {
	var results []Result
	for _, file := range args {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var r Result
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
			}
			results = append(results, r)
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(out, summary(results))
	return err
}
