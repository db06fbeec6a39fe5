package oracle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/sim/replay"
)

// recordCommand plays a scenario, records the kubelet in the format of package sim/record, and replays the
// recordings of its processes.
func recordCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("record", flag.ContinueOnError)
	var o playOptions
	o.flags(fs)
	fs.StringVar(&o.record, "dir", "", "`directory` of the recording; not below "+fmt.Sprint(isolatedDirs))
	files, err := parse(fs, args, 1, out)
	if err != nil {
		return err
	}
	if o.record == "" {
		return errors.New("record requires --dir")
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
	fmt.Fprintf(out, "%s, %d pods, recorded in %s\n", run.Kubelet, len(podsOf(run)), o.record)
	return replayProcesses(ctx, o.record, out)
}

// replayProcesses replays the recordings of a tap, each in an agent of its own.
func replayProcesses(ctx context.Context, dir string, out io.Writer) error {
	for n := 1; ; n++ {
		recording, err := replay.Open(processDir(dir, n))
		if errors.Is(err, os.ErrNotExist) && n > 1 {
			return nil
		} else if err != nil {
			return err
		}
		result, err := replay.Run(ctx, recording, replay.Options{Decisions: true})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "process %d, %v: %v\n", n, recording.Length.Round(time.Second), result.Decisions)
		if result.Divergence != nil {
			fmt.Fprintf(out, "first difference: %v\n", result.Divergence)
		}
	}
}
