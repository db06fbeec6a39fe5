// Replay replays a recording of a node in virtual time (package sim/replay): the recorded pods, answers of the
// runtime, events and probes drive the agent of this program, whose calls and statuses are compared with the recorded ones.
//
//	$ go run ./examples/replay /var/log/kubeparts-recordings
//	$ go run ./examples/replay --until 3h4m --from default/web --draw web.svg FILE.kprec
//
// The argument is a file, or a directory, whose last recording is replayed. The exit code is 1 if the agent did
// something else than the recorded one: the first divergence is printed.
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

  replay [flags] FILE|DIRECTORY

Flags:
`

// run reports whether there is no divergence.
func run(ctx context.Context, args []string, out, logs io.Writer) (ok bool, err error) {
	var o replay.Options
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are reported once, without usage
	flags.Usage = func() {}
	flags.DurationVar(&o.Until, "until", 0, "`time` since the start of the recording at which the replay ends; 0: the end")
	flags.StringVar(&o.Pod, "from", "", "replay only this pod: `namespace/name`")
	flags.DurationVar(&o.Tolerance, "tolerance", 5*time.Second, "largest difference of the times of an action that is not a divergence")
	flags.Float64Var(&o.Speed, "speed", 0, "recorded seconds per second; 0: as fast as possible")
	repeat := flags.Int("repeat", 1, "`number` of replays, which must have the same digest")
	draw := flags.String("draw", "", "`file` to write a picture of the replayed pods to, as SVG")
	verbose := flags.Bool("logs", false, "print the logs of the agent")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return true, err
	case err != nil:
		return false, fmt.Errorf("%w; see --help", err)
	case flags.NArg() != 1:
		return false, errors.New("one file or directory is required; see --help")
	}
	if *verbose {
		o.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	recording, err := replay.Open(flags.Arg(0))
	if err != nil {
		return false, err
	}
	began := time.Now()
	result, err := replay.Run(ctx, recording, o)
	if err != nil {
		return false, err
	}
	report(out, recording, result, time.Since(began))
	for i := 1; i < *repeat; i++ {
		again, err := replay.Run(ctx, recording, o)
		if err != nil {
			return false, err
		}
		if again.Digest != result.Digest {
			return false, fmt.Errorf("replay %d has the digest %.12s: %v", i+1, again.Digest, again.Divergence)
		}
	}
	if *repeat > 1 {
		fmt.Fprintf(out, "%d replays with the same digest in %v\n", *repeat, time.Since(began).Round(time.Millisecond))
	}
	if *draw != "" {
		var picture bytes.Buffer
		if err := result.Timeline.WriteSVG(&picture); err != nil {
			return false, err
		}
		if err := os.WriteFile(*draw, picture.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	return result.Divergence == nil, nil
}

// report prints the result.
func report(out io.Writer, r *replay.Recording, result replay.Result, took time.Duration) {
	if r.Damage != nil {
		fmt.Fprintf(out, "The recording ends after %v: %v\n", r.Length.Round(time.Millisecond), r.Damage)
	}
	fmt.Fprintf(out, "Replayed %v of node %q since %s in %v\n", result.Until.Round(time.Millisecond), r.Header.Node,
		r.Header.Start.Format(time.RFC3339), took.Round(time.Millisecond))
	fmt.Fprintf(out, "%d actions compared, %d answers not in the recording, digest %.12s\n", result.Compared, result.Unrecorded, result.Digest)
	if result.Divergence == nil {
		fmt.Fprintln(out, "No divergence")
		return
	}
	fmt.Fprintf(out, "\nFirst divergence, at %s:\n%v\n", r.Header.Start.Add(result.Divergence.At).Format(time.RFC3339Nano), result.Divergence)
}
