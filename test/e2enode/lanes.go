package e2enode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// A job is a part of the selected tests with one program. A lane, a process in namespaces of its own, runs one job at
// a time.
type job struct {
	subject subject
	tests   []string
}

// jobTime is about the time that a job takes. A lane needs a minute to start and to stop the programs.
const jobTime = 10 * time.Minute

// jobsOf divides the selected tests into jobs of about the same time, and returns them for each program.
// Before the first run, when the names of the tests are not known, it returns one job of each.
func jobsOf(all results, o options) (jobs []job) {
	skip := reasons.Patterns(o.excluded())
	if o.skip != "" {
		skip = append(skip, o.skip)
	}
	var selected []string
	for name := range all {
		excluded := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(title + " " + name) }
		if o.focus.MatchString(title+" "+name) && !slices.ContainsFunc(skip, excluded) {
			selected = append(selected, name)
		}
	}
	var total time.Duration
	if o.missing {
		selected = slices.DeleteFunc(selected, func(name string) bool { return all.have(name, o.subjects) })
	}
	for _, name := range selected {
		total += all.cost(name)
	}
	for _, part := range divide(selected, int(total/jobTime)+1, all.cost) {
		for _, s := range o.subjects {
			tests := slices.Clone(part)
			if o.missing {
				tests = slices.DeleteFunc(tests, func(name string) bool { return all.have(name, []subject{s}) })
			}
			if len(tests) > 0 {
				jobs = append(jobs, job{s, tests})
			}
		}
	}
	if len(all) == 0 {
		for _, s := range o.subjects {
			jobs = append(jobs, job{subject: s})
		}
	}
	return jobs
}

// have reports whether there is a result of a test with each program.
func (all results) have(name string, with []subject) bool {
	return !slices.ContainsFunc(with, func(s subject) bool { _, ok := all[name][s]; return !ok })
}

// divide returns at most n parts of about the same cost, of which none is empty. Tests with the same
// beginning stay together, because those of an ordered container require each other.
func divide(names []string, n int, cost func(name string) time.Duration) [][]string {
	groups := map[string][]string{}
	for _, name := range names {
		words := strings.Fields(name)
		key := strings.Join(words[:min(len(words), 8)], " ")
		groups[key] = append(groups[key], name)
	}
	costs := map[string]time.Duration{}
	var keys []string
	for key, group := range groups {
		keys = append(keys, key)
		slices.Sort(group)
		for _, name := range group {
			costs[key] += cost(name)
		}
	}
	// The most expensive groups first, each to the part that is the cheapest so far.
	slices.SortFunc(keys, func(a, b string) int {
		if costs[a] != costs[b] {
			return int(costs[b] - costs[a])
		}
		return strings.Compare(a, b)
	})
	parts, sums := make([][]string, n), make([]time.Duration, n)
	for _, key := range keys {
		cheapest := 0
		for i := range sums {
			if sums[i] < sums[cheapest] {
				cheapest = i
			}
		}
		parts[cheapest] = append(parts[cheapest], groups[key]...)
		sums[cheapest] += costs[key]
	}
	return slices.DeleteFunc(parts, func(p []string) bool { return len(p) == 0 })
}

// cost is about the time that a test takes in its part: other tests run at the same time unless
// it is serial.
func (all results) cost(name string) time.Duration {
	const unknown = 30 * time.Second
	cost := time.Duration(0)
	for _, r := range all[name] {
		cost = max(cost, r.took)
	}
	if cost == 0 {
		cost = unknown
	}
	if !strings.Contains(name, "[Serial]") {
		cost /= 4
	}
	return cost
}

// runJobs runs jobs in this number of lanes and calls done, one call at a time, with the results.
// It returns the errors after all lanes have ended.
func runJobs(ctx context.Context, jobs []job, lanes int, o options, out io.Writer, done func(job, history) error) error {
	dir, err := os.MkdirTemp("", "e2e") // short: sockets are below
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.agent == "" && slices.ContainsFunc(jobs, func(j job) bool { return j.subject == agent }) {
		o.agent = filepath.Join(dir, "agent")
		if err := labenv.Build(ctx, o.agent); err != nil {
			return err
		}
	}
	queue := make(chan int, len(jobs))
	for i := range jobs {
		queue <- i
	}
	close(queue)
	var errs []error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(lanes, len(jobs)) {
		wg.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				found, err := runJob(ctx, filepath.Join(dir, fmt.Sprint(i)), jobs[i], o, &lockedWriter{mu: &mu, w: out})
				mu.Lock()
				if found != nil {
					if doneErr := done(jobs[i], *found); err == nil {
						err = doneErr
					}
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("job %d: %w", i, err))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// runJob runs a job in a lane and returns the results so far, also with an error. They are nil if there are
// none.
func runJob(ctx context.Context, dir string, j job, o options, out io.Writer) (*history, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	file, focus := filepath.Join(dir, "results.tsv"), o.focus.String()
	if len(j.tests) > 0 {
		focus = exactly(j.tests)
	}
	known := history{latest: noRun, tests: results{}}
	for _, name := range j.tests { // from their names the lane knows the modes that they require
		known.tests[name] = nil
	}
	if err := known.write(file); err != nil {
		return nil, err
	}
	logs := filepath.Join(o.logs, filepath.Base(dir))
	args := []string{
		"e2enode",
		"--subjects=" + string(j.subject), "--focus=" + focus, "--skip=" + o.skip, "--labels=" + o.labels,
		"--procs=" + fmt.Sprint(o.procs), "--timeout=" + o.timeout.String(), "--tools=" + o.tools, "--agent=" + o.agent, "--kubernetes=" + o.kubernetes,
		"--logs=" + logs, "--results=" + file, "--report=" + filepath.Join(dir, "report.md"),
	}
	code, err := isolate.Run(ctx, isolate.Config{Args: args, Out: out, Dir: dir})
	if err == nil && code > 1 {
		err = fmt.Errorf("exit code %d", code)
	}
	found, readErr := readResults(file)
	if readErr != nil {
		return nil, readErr
	}
	return &found, err
}

// A lockedWriter is an io.Writer of several lanes.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// runLane runs the tests of a job within its lane, and returns the exit code.
func runLane(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	h, err := readResults(o.results)
	if err != nil {
		say("failed to read the names of the tests: %v", err)
		return 2
	}
	names := slices.DeleteFunc(h.names(), func(name string) bool { return reasons.Find(o.excluded(), name) != nil })
	for _, s := range o.subjects {
		o := o
		if o.emulated != "" && (o.missing || o.unmeasurable) {
			selected := o.selectEmulated(s, names, emulated().tests)
			if len(selected) == 0 {
				say("%s: there is a result of each of these tests", s)
				continue
			}
			o.focus = regexp.MustCompile(exactly(selected))
		}
		required := modesOf(names, o.focus)
		if len(required) == 0 {
			say("no test matches --focus and is run on this machine")
			return 2
		}
		for _, m := range required {
			run, latest, err := runSubject(ctx, s, m, o, out, say)
			h.tests.merge(s, run)
			if latest != "" {
				h.latest = latest
			}
			if err := h.write(o.results); err != nil {
				say("failed to write the results: %v", err)
				return 2
			}
			if err != nil {
				say("failed to run the tests against the %s: %v", s, err)
				return 2
			}
		}
	}
	return 0
}
