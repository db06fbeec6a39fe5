//go:build unix

package starts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("starts", "how long pods take to start under load, by step, and of a kubelet", parseFlags, run)
}

// patience is the limit of a phase, on a slow machine.
const patience = 10 * time.Minute

// resultsFile is the file to which the program in namespaces of its own writes its results.
const resultsFile = "results.json"

// run measures, and returns the exit code.
func run(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	if isolate.Isolated() {
		if err := lab.Program(ctx, out, func(t testing.TB) error { return measure(ctx, t, o, o.only[0]) }); err != nil {
			say("%v", err)
			return 1
		}
		return 0
	}
	if slices.Contains(o.only, agentName) && o.agent == "" {
		say("building the complete node")
		var err error
		if o.agent, err = labenv.BuildCached(ctx, "starts"); err != nil {
			say("failed to prepare: %v", err)
			return 2
		}
	}
	results := map[string][]result{}
	for _, subject := range o.only {
		say("%s (load %.1f)", subject, labenv.Load())
		r, err := measureIsolated(ctx, o, subject)
		if err != nil {
			say("failed to measure %s: %v", subject, err)
			return 1
		}
		results[subject] = r
	}
	text := report(o, results)
	fmt.Fprint(out, text)
	if err := markdown.Write(o.report, text, say); err != nil {
		say("%v", err)
		return 1
	}
	return 0
}

// measureIsolated measures one program in namespaces of its own.
func measureIsolated(ctx context.Context, o options, subject string) (results []result, err error) {
	dir, err := os.MkdirTemp(o.scratch, "s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	code, err := isolate.Run(ctx, isolate.Config{Dir: dir, Out: &out, Args: o.args(subject)})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s\n%s", err, out.String(), labenv.Tail(filepath.Join(dir, "node.log"), 20))
	}
	data, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if err != nil {
		return nil, err
	}
	return results, json.Unmarshal(data, &results)
}

// isolatedDirs are the directories of the machine that kubelets have in their code, or
// the parents of those that may not exist.
var isolatedDirs = []string{"/var/lib", "/var/log", "/run"}

// measure measures one program in the namespaces that measureIsolated has made.
func measure(ctx context.Context, t testing.TB, o options, subject string) error {
	if o.containerd {
		if err := os.Setenv("KUBEPARTS_CONTAINERD", lab.FindContainerd()); err != nil {
			return err
		}
	}
	dir := os.Getenv("TMPDIR")
	if _, err := isolate.Directories(dir, isolatedDirs...); err != nil { // the mounts end with the namespaces
		return err
	}
	m, err := newMachine(ctx, t, o, dir)
	if err != nil {
		return err
	}
	s, used, err := newStarter(ctx, t, o, subject, dir, m)
	if err != nil {
		return err
	}
	var results []result
	for _, p := range o.phases() {
		phaseCtx, cancel := context.WithTimeout(ctx, patience)
		profiled := profile(phaseCtx, o.profiles, subject, p.name)
		before, began := used(), time.Now()
		pods, err := p.run(phaseCtx, s)
		took := time.Since(began)
		if err == nil {
			err = complete(m, pods)
		}
		if err == nil {
			r := newResult(p.name, pods)
			r.Took, r.Used = took, used().minus(before)
			results = append(results, r)
			err = profiled()
		}
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	data, err := json.Marshal(results)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultsFile), data, 0o644)
}

// newStarter starts a program. used returns what it has used.
func newStarter(ctx context.Context, t testing.TB, o options, subject, dir string, m machine) (s starter, used func() cost, err error) {
	if subject == bareName {
		s, err = newBareClient(ctx, dir, m)
		return s, func() cost { return cost{CRICalls: m.count()} }, err
	}
	c, err := newCluster(ctx, t, dir, m)
	if err != nil {
		return nil, nil, err
	}
	binary := o.agent
	if subject == kubeletName {
		binary = o.kubelet
	}
	node, err := startNode(ctx, t, binary, dir, c)
	return c, func() cost {
		cpu, _ := labenv.CPUTime(node.PID()) // zero if it has exited, which ends the phase
		return cost{CPU: cpu, CRICalls: m.count(), APIRequests: int(c.requests.Load())}
	}, err
}

// report returns the tables with a line about the run.
func report(o options, results map[string][]result) string {
	runtime := fmt.Sprintf("Calls of the runtime: sandbox %v to %v, container and its start %v to %v each", 5*o.latency, 10*o.latency, o.latency, 2*o.latency)
	if o.containerd {
		runtime = "containerd, behind a proxy"
	}
	return fmt.Sprintf("\n%s, %s. %s. Load average of the machine: %.1f.\n%s",
		time.Now().Format(time.DateOnly), markdown.Machine(), runtime, labenv.Load(), tables(o.only, results))
}
