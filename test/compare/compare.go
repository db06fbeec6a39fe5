//go:build unix

package compare

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("compare", "the same pods on a kubelet and on the node: no difference without a reason", parseFlags, compare)
}

// compare observes both nodes and returns the exit code.
func compare(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	began := time.Now()
	kubelet, agent, err := snapshots(ctx, o, out, say)
	if err != nil {
		say("failed to observe the nodes: %v", err)
		return 2
	}
	reasons, err := parseReasons(reasonsText)
	if err != nil {
		say("%v", err)
		return 2
	}
	defects, err := parseDefects(defectsText)
	if err != nil {
		say("%v", err)
		return 2
	}
	before, after := newDocument(kubelet), newDocument(agent)
	result := explain(diff(before, after), reasons)
	result.print(out, o.all)
	r := report{result: result, on: began, kubelet: kubelet, agent: agent, subjects: len(before), defects: defects}
	if err := markdown.Write(o.report, r.markdown(), say); err != nil {
		say("%v", err)
		return 2
	}
	complete := o.focus == "" && o.skip == ""
	fmt.Fprintf(out, "%d pods, %d subjects: %d differences, %d unexplained\n", len(kubelet.Pods), len(before), result.count(), len(result.unexplained))
	switch {
	case len(result.unexplained) > 0:
		return 1
	case complete && len(result.unused) > 0:
		for _, r := range result.unused {
			fmt.Fprintf(out, "no longer needed, delete it from reasons.txt: %s\n", r.pattern)
		}
		return 1
	}
	return 0
}

// snapshots returns what was observed of the kubelet and of the agent: in this run, or in
// the run whose results are in o.from.
func snapshots(ctx context.Context, o options, out io.Writer, say func(string, ...any)) (kubelet, agent *snapshot, err error) {
	found := map[string]*snapshot{}
	for _, kind := range Kinds() {
		if o.from != "" {
			if found[kind], err = load(filepath.Join(o.from, kind+".json")); err != nil {
				return nil, nil, err
			}
			continue
		}
		err = lab.Program(ctx, out, func(t testing.TB) error {
			var err error
			found[kind], err = observe(ctx, t, kind, o, say)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", kind, err)
		}
		if o.save != "" {
			if err := found[kind].save(filepath.Join(o.save, kind+".json")); err != nil {
				return nil, nil, err
			}
		}
	}
	return found[kindKubelet], found[kindAgent], nil
}
