package oracle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// recordCommand plays a scenario, records the kubelet in the format of package sim/record, and replays the recording.
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
	if i := slices.IndexFunc(s, func(s Step) bool { return slices.Contains([]sim.Action{sim.Kill, sim.Reboot, sim.Fail}, s.Do) }); i >= 0 {
		return fmt.Errorf("%s: a recording is of one process, and only the kubelet may write statuses; remove this step", s[i])
	}
	run, err := playIsolated(ctx, s, o)
	if err != nil {
		return err
	}
	recording, err := replay.Open(o.record)
	if err != nil {
		return err
	}
	result, err := replay.Run(ctx, recording, replay.Options{Decisions: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d pods: %v recorded in %s\n%v\n", run.Kubelet, len(podsOf(run)), recording.Length, o.record, result.Decisions)
	if result.Divergence != nil {
		fmt.Fprintf(out, "first difference: %v\n", result.Divergence)
	}
	return nil
}
