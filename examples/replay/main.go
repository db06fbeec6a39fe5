// Replay replays a recording of a node in virtual time (package sim/replay): the recorded pods, answers of the
// runtime, events and probes drive the agent of this program, whose calls and statuses
// are compared with the recorded ones.
//
//	$ go run ./examples/replay /var/log/kubeparts-recordings
//	$ go run ./examples/replay --until 3h4m --from default/web --draw web.svg FILE.kprec
//	$ go run ./examples/replay --invariant all FILE.kprec
//	$ go run ./examples/replay --decisions DIRECTORY # of another program, such as the kubelet (docs/oracle.md)
//	$ go run ./examples/replay --shrink --invariant back-off --out small.kprec --as-test backoff_test.go FILE.kprec
//
// The argument is a file, or a directory, whose last recording is replayed. The exit code is 1 if the agent did
// something else than the recorded one, or violated an invariant: the first divergence or violation is printed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/sim/replay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

const usage = `replay replays a recording of a node and prints the first divergence.

  replay [flags] FILE|DIRECTORY                    compare the agent with the recorded one
  replay --invariant NAME[,NAME] FILE|DIRECTORY    check the agent by invariants instead
  replay --decisions FILE|DIRECTORY                compare with another program that was recorded
  replay --shrink [--invariant NAME] [--out FILE] [--as-test FILE] FILE|DIRECTORY
  replay --list-invariants

--shrink drops pods, time, frames and fields of a recording while its replay still violates the
invariant, or still diverges in the same way. --out writes the result as a recording, --as-test as a
Go test that anyone can run without the recording; the latter also works without --shrink.

Flags:
`

// options are the flags.
type options struct {
	replay.Options
	draw, out, asTest string
	shrink, all       bool
	replays, repeat   int
}

// run reports whether there is neither a divergence nor a violation.
func run(ctx context.Context, args []string, out, logs io.Writer) (ok bool, err error) {
	var o options
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are reported once, without usage
	flags.Usage = func() {}
	flags.DurationVar(&o.Until, "until", 0, "`time` since the start of the recording at which the replay ends; 0: the end")
	flags.StringVar(&o.Pod, "from", "", "replay only this pod: `namespace/name`")
	flags.DurationVar(&o.Tolerance, "tolerance", 5*time.Second, "largest difference of the times of an action that is not a divergence")
	flags.Float64Var(&o.Speed, "speed", 0, "recorded seconds per second; 0: as fast as possible")
	flags.IntVar(&o.repeat, "repeat", 1, "`number` of replays, which must have the same digest")
	flags.StringVar(&o.draw, "draw", "", "`file` to write a picture of the replayed pods to, as SVG")
	flags.BoolVar(&o.shrink, "shrink", false, "shrink the recording; requires --out or --as-test")
	flags.IntVar(&o.replays, "replays", 2000, "largest `number` of replays of --shrink")
	flags.StringVar(&o.out, "out", "", "`file` to write the recording to, shrunk with --shrink")
	flags.StringVar(&o.asTest, "as-test", "", "`file` to write the recording to as a Go test, such as pod_test.go")
	invariants := flags.String("invariant", "", "`names` of invariants that must hold, separated by commas, or all")
	flags.BoolVar(&o.Decisions, "decisions", false, "the recording is that of another program, such as the kubelet: compare the calls that start and stop")
	flags.BoolVar(&o.all, "all", false, "with --decisions: print all differences")
	list := flags.Bool("list-invariants", false, "print the invariants")
	verbose := flags.Bool("logs", false, "print the logs of the agent")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return true, err
	case err != nil:
		return false, fmt.Errorf("%w; see --help", err)
	case *list:
		for _, inv := range replay.Invariants() {
			fmt.Fprintf(out, "%-28s %s\n", inv.Name, inv.Description)
		}
		return true, nil
	case flags.NArg() != 1:
		return false, errors.New("one file or directory is required; see --help")
	case o.shrink && o.out == "" && o.asTest == "":
		return false, errors.New("--shrink requires --out FILE or --as-test FILE for the result")
	}
	if o.Invariants, err = invariantsOf(*invariants); err != nil {
		return false, err
	}
	if *verbose {
		o.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	recording, err := replay.Open(flags.Arg(0))
	if err != nil {
		return false, err
	}
	began := time.Now()
	result, err := replay.Run(ctx, recording, o.Options)
	if err != nil {
		return false, err
	}
	report(out, recording, result, o, time.Since(began))
	for i := 1; i < o.repeat; i++ {
		again, err := replay.Run(ctx, recording, o.Options)
		if err != nil {
			return false, err
		}
		if again.Digest != result.Digest {
			return false, fmt.Errorf("replay %d has the digest %.12s: %v", i+1, again.Digest, again.Divergence)
		}
	}
	if o.repeat > 1 {
		fmt.Fprintf(out, "%d replays with the same digest in %v\n", o.repeat, time.Since(began).Round(time.Millisecond))
	}
	if o.draw != "" {
		var picture bytes.Buffer
		if err := result.Timeline.WriteSVG(&picture); err != nil {
			return false, err
		}
		if err := os.WriteFile(o.draw, picture.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	return result.Divergence == nil && len(result.Violations) == 0, o.save(ctx, out, logs, recording, result)
}

// invariantsOf returns the names in a flag.
func invariantsOf(text string) ([]string, error) {
	switch text {
	case "":
		return nil, nil
	case "all":
		return replay.InvariantNames(), nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if !slices.Contains(replay.InvariantNames(), name) {
			return nil, fmt.Errorf("--invariant: there is no %q; --list-invariants prints all", name)
		}
	}
	return names, nil
}

// save shrinks the recording and writes it to files, as the flags specify.
func (o options) save(ctx context.Context, out, logs io.Writer, r *replay.Recording, result replay.Result) error {
	names := o.Invariants
	if len(result.Violations) > 0 {
		names = []string{result.Violations[0].Invariant}
	}
	if o.shrink {
		shrink := replay.ShrinkOptions{Replay: o.Options, Replays: o.replays, Progress: progress(logs)}
		switch {
		case result.Divergence == nil && len(result.Violations) == 0 && len(o.Invariants) == 0:
			return errors.New("--shrink: the replay does not diverge; name what must hold with --invariant NAME, or try --invariant all")
		case len(result.Violations) == 0 && len(o.Invariants) > 0:
			return errors.New("--shrink: no invariant is violated; replay with the code that was recorded")
		case len(result.Violations) > 0:
			shrink.Invariant = names[0]
		}
		small, err := replay.Shrink(ctx, r, shrink)
		if small == nil {
			return err
		}
		if err != nil { // it was interrupted: the smallest one so far is written
			fmt.Fprintln(logs, "replay: shrinking ended early:", err)
		}
		fmt.Fprintf(out, "\nShrunk from %d frames of %v to %d of %v\n", count(r), r.Length.Round(time.Second), count(small), small.Length.Round(time.Millisecond))
		r = small
	}
	if o.asTest != "" {
		var text bytes.Buffer
		if err := r.AsTest(&text, replay.TestFile{Invariants: names}); err != nil {
			return fmt.Errorf("--as-test: %w", err)
		}
		if err := os.WriteFile(o.asTest, text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("--as-test: %w", err)
		}
		fmt.Fprintf(out, "Wrote %s, %d lines: go test %[1]s\n", o.asTest, bytes.Count(text.Bytes(), []byte("\n")))
	}
	if o.out != "" {
		var data bytes.Buffer
		if err := r.Write(&data); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := os.WriteFile(o.out, data.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		fmt.Fprintf(out, "Wrote %s, %d bytes\n", o.out, data.Len())
	}
	return nil
}

// count returns the number of frames.
func count(r *replay.Recording) (n int) {
	for range r.Frames() {
		n++
	}
	return n
}

// progress prints the state of a long shrinking every second.
func progress(logs io.Writer) func(replay.ShrinkProgress) {
	last := time.Now()
	return func(p replay.ShrinkProgress) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(logs, "%s: %d frames of %v after %d replays\n", p.Step, p.Frames, p.Length.Round(time.Second), p.Replays)
		}
	}
}

// report prints the result.
func report(out io.Writer, r *replay.Recording, result replay.Result, o options, took time.Duration) {
	if r.Damage != nil {
		fmt.Fprintf(out, "The recording ends after %v: %v\n", r.Length.Round(time.Millisecond), r.Damage)
	}
	fmt.Fprintf(out, "Replayed %v of node %q since %s in %v\n", result.Until.Round(time.Millisecond), r.Header.Node,
		r.Header.Start.Format(time.RFC3339), took.Round(time.Millisecond))
	switch {
	case len(result.Violations) > 0:
		fmt.Fprintf(out, "%d violations, digest %.12s\n\nFirst violation: %s", len(result.Violations), result.Digest, result.Explain())
	case o.Decisions:
		d := result.Decisions
		fmt.Fprintln(out, d)
		for i, difference := range d.Differences {
			if i == 0 {
				fmt.Fprintf(out, "\nFirst difference, at %s:\n%v\n", r.Header.Start.Add(difference.At).Format(time.RFC3339Nano), difference)
			} else if o.all {
				fmt.Fprintln(out, difference)
			}
		}
	case len(o.Invariants) > 0:
		fmt.Fprintf(out, "%d invariants hold, digest %.12s\n", len(o.Invariants), result.Digest)
	default:
		fmt.Fprintf(out, "%d actions compared, %d answers not in the recording, digest %.12s\n", result.Compared, result.Unrecorded, result.Digest)
		if d := result.Divergence; d != nil {
			fmt.Fprintf(out, "\nFirst divergence, at %s:\n%v\n", r.Header.Start.Add(d.At).Format(time.RFC3339Nano), d)
			return
		}
		fmt.Fprintln(out, "No divergence")
	}
}
