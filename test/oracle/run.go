package oracle

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// ErrViolated is returned by Run if a kubelet has violated an invariant.
var ErrViolated = errors.New("an invariant was violated")

const usage = `oracle plays scenarios on a kubelet, over a CRI runtime in memory, and checks what can be observed from
outside. docs/oracle.md describes scenarios and invariants.

  oracle run FILE --kubelet PATH          play a scenario; print the timeline and the violations
  oracle fuzz --kubelet PATH --for 1h     play drawn scenarios; keep those that violate an invariant
  oracle shrink FILE --kubelet PATH       make a violating scenario smaller
  oracle record FILE --dir DIR            record a kubelet in the format of sim/record, and replay it
  oracle tap --listen SOCKET --dir DIR    record the kubelet of a node between it and its runtime, for examples/replay
  oracle known FILE... --ours PATH        require a known violation of Kubernetes' kubelet, and none of this repository's
  oracle check FILE                       check what 'run --save' or fuzz has recorded; also a directory
  oracle compare FILE FILE                classify the differences of two recordings of a scenario; also of directories
  oracle summary FILE...                  print the tables of results of fuzz
  oracle draw --seed N                    print a drawn scenario
  oracle invariants                       print the invariants

It requires Linux and root. Each kubelet runs in namespaces of its own, with its own network, processes and
mounts. The exit code is 1 if an invariant was violated.

Flags:
  --help    after the name of a command: its flags
`

// commands are the subcommands.
var commands = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"run": runCommand, "play": playCommand, "draw": drawCommand, "fuzz": fuzzCommand, "check": checkCommand,
	"invariants": invariantsCommand, "summary": summaryCommand, "record": recordCommand, "known": knownCommand, "tap": tapCommand, "shrink": shrinkCommand, "compare": compareCommand,
}

// Command returns the subcommand of the program of this module.
func Command() cli.Command {
	parse := func(args []string, _ io.Writer) ([]string, error) { return args, nil }
	return cli.NewCommand("oracle", "drawn scenarios on a kubelet over a runtime in memory, checked by invariants", parse, func(ctx context.Context, args []string, out io.Writer) int {
		switch err := Run(ctx, args, out); {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return 0
		case errors.Is(err, ErrViolated):
			return 1
		default:
			fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
			return 2
		}
	})
}

// Run runs the command with these arguments, without the name of the program. It returns flag.ErrHelp after it
// has printed help, and ErrViolated if a kubelet has violated an invariant.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if command := commands[args[0]]; command != nil {
			return command(ctx, args[1:], out)
		}
	}
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		fmt.Fprint(out, usage)
		return flag.ErrHelp
	}
	return fmt.Errorf("no command %q; see --help", args[0])
}

// playOptions are the flags that determine how a scenario is played.
type playOptions struct {
	kubelet   string
	api       string
	seed      uint64
	verbosity int
	keepLog   bool
	scratch   string
	record    string // directory of a recording of package sim/record; empty: none
}

func (o *playOptions) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.kubelet, "kubelet", "", "`file` of the kubelet (default: that of hack/kubelet.sh)")
	fs.StringVar(&o.api, "api", apiMemory, "`kind` of the API server: "+apiMemory+" or "+apiReal)
	fs.Uint64Var(&o.seed, "seed", 1, "`number` that determines IDs and the calls that a fault with percent affects")
	fs.IntVar(&o.verbosity, "v", 2, "verbosity of the kubelet's log")
	fs.BoolVar(&o.keepLog, "log", false, "keep the end of the kubelet's log")
	fs.StringVar(&o.scratch, "scratch", "", "`directory` for temporary files, with a short path (default: that of the system)")
}

// args returns the flags as arguments.
func (o playOptions) args() []string {
	return []string{"--kubelet=" + o.kubelet, "--api=" + o.api, fmt.Sprintf("--seed=%d", o.seed), fmt.Sprintf("--v=%d", o.verbosity), fmt.Sprintf("--log=%t", o.keepLog), "--record=" + o.record}
}

// complete sets defaults and checks the options.
func (o *playOptions) complete() (err error) {
	if o.kubelet, err = labenv.FindKubelet(o.kubelet); err != nil {
		return fmt.Errorf("%w, and 'go build ./examples/kubelet' that of this repository", err)
	}
	if o.kubelet, err = filepath.Abs(o.kubelet); err != nil {
		return err
	}
	if o.record != "" {
		if o.record, err = filepath.Abs(o.record); err != nil {
			return err
		}
	}
	return nil
}

// parse parses the flags of a command with at most n arguments before or after them, and returns those.
func parse(fs *flag.FlagSet, args []string, n int, out io.Writer) (files []string, err error) {
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && len(files) < n {
		files, args = append(files, args[0]), args[1:]
	}
	if err := cli.Parse(fs, args, usage+"\nFlags of "+fs.Name()+":\n", out); err != nil {
		return nil, err
	}
	if len(files) < n {
		return nil, fmt.Errorf("%s requires a file; see --help", fs.Name())
	}
	return files, nil
}

// The times that a run takes in addition to its scenario, at most.
const overhead = readyTimeout + settleTimeout + endTimeout + 2*time.Minute

// playIsolated plays a scenario in namespaces of its own.
func playIsolated(ctx context.Context, s Scenario, o playOptions) (*Recording, error) {
	dir, err := os.MkdirTemp(o.scratch, "o")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	scenario, result := filepath.Join(dir, "scenario"), filepath.Join(dir, "run.json")
	if err := os.WriteFile(scenario, []byte(s.String()), 0o644); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.End()+overhead)
	defer cancel()
	var out bytes.Buffer
	code, err := isolate.Run(ctx, isolate.Config{Dir: dir, Out: &out, Args: append([]string{"oracle", "play", scenario, "--result=" + result}, o.args()...)})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return nil, fmt.Errorf("play the scenario: %w: %s", err, out.String())
	}
	return loadRecording(result)
}

// isolatedDirs are the directories of the machine that kubelets have in their code, or
// the parents of those that may not exist.
var isolatedDirs = []string{"/var/lib", "/var/log", "/run"}

// playCommand plays a scenario in the namespaces that playIsolated has made.
func playCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("play", flag.ContinueOnError)
	var o playOptions
	o.flags(fs)
	result := fs.String("result", "", "`file` to write what was recorded to")
	fs.StringVar(&o.record, "record", "", "`directory` of a recording of package sim/record")
	files, err := parse(fs, args, 1, out)
	if err != nil {
		return err
	}
	if !isolate.Isolated() {
		return errors.New("play is the part of the other commands that runs in namespaces of its own")
	}
	s, err := readScenario(files[0])
	if err != nil {
		return err
	}
	dir := os.Getenv("TMPDIR")
	if _, err := isolate.Directories(dir, isolatedDirs...); err != nil { // the mounts end with the namespaces
		return err
	}
	var run *Recording
	err = lab.Program(ctx, out, func(t testing.TB) (err error) {
		run, err = play(ctx, t, s, o, dir)
		return err
	})
	if err != nil {
		return err
	}
	return saveRecording(*result, run)
}

func readScenario(file string) (Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := ParseScenario(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// runCommand plays a scenario, and prints its timeline and the violations.
func runCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	var o playOptions
	o.flags(fs)
	svg := fs.String("svg", "", "`file` to draw the timeline to")
	save := fs.String("save", "", "`file` to write what was recorded to, in JSON")
	files, err := parse(fs, args, 1, out)
	if err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	s, err := readScenario(files[0])
	if err != nil {
		return err
	}
	run, err := playIsolated(ctx, s, o)
	if err != nil {
		return err
	}
	if *save != "" {
		if err := saveRecording(*save, run); err != nil {
			return err
		}
	}
	return report(run, *svg, out)
}

// report prints the timeline and the violations of a recording.
func report(run *Recording, svgFile string, out io.Writer) error {
	violations, err := check(run)
	if err != nil {
		return err
	}
	lines := timeline(run, violations)
	for _, line := range lines {
		fmt.Fprintln(out, line.text)
	}
	if svgFile != "" {
		if err := os.WriteFile(svgFile, []byte(drawSVG(run, violations)), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s, %s: %d pods, %d records, %d violations\n", run.Kubelet, run.API, len(podsOf(run)), len(run.Records), len(violations))
	for _, v := range violations {
		fmt.Fprintln(out, v)
	}
	if len(violations) > 0 {
		return ErrViolated
	}
	return nil
}
