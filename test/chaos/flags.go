package chaos

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// options are the flags.
type options struct {
	duration   time.Duration
	pods       int
	seed       uint64
	kinds      []string
	bound      time.Duration
	containerd string
	report     string
	logs       string
	record     string
	profile    string
	once       bool
	list       bool
	draw       int
}

const usage = `chaos runs the complete node (examples/kubelet) in a real cluster and on a real
containerd, injects faults, and checks the invariants of the simulation.

  go run ./test chaos                        50 pods, 10 minutes, a random seed
  go run ./test chaos --seed 7               the rounds of a seed
  go run ./test chaos --once --pods 10       each fault once
  go run ./test chaos --faults shim-killed,agent-killed --duration 2m
  go run ./test chaos --draw 20 --seed 7     print rounds, and do nothing

It requires Linux, root, a containerd with its shim and ctr in the same directory, runc,
CNI plugins, busybox, etcd and Kubernetes' programs; docs/integration.md describes how to
get them. Containerd, cluster, network, cgroups and file systems are created for the run
and removed afterwards, also after an interrupt.

The exit code is 1 if an invariant was violated, and 2 if the run failed.
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	var faults string
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.DurationVar(&o.duration, "duration", 10*time.Minute, "`time` during which rounds start; the last one is completed")
	fs.IntVar(&o.pods, "pods", 50, "`number` of pods")
	fs.Uint64Var(&o.seed, "seed", 0, "`number` that the rounds are drawn from (0: random; it is printed)")
	fs.StringVar(&faults, "faults", "all", "comma-separated `kinds` of faults; see --list")
	fs.DurationVar(&o.bound, "bound", 3*time.Minute, "limit of the recovery `time` after the last fault of a round")
	fs.StringVar(&o.containerd, "containerd", "", "`program` (default: KUBEPARTS_CONTAINERD, that of .ci/run, or the one in PATH)")
	fs.StringVar(&o.report, "report", "", "`file` to write a report to, in Markdown")
	fs.StringVar(&o.logs, "logs", "", "`directory` for the logs of the node and containerd (default: they are removed)")
	fs.StringVar(&o.record, "record", "", "`directory` for recordings of the node (docs/recording.md), a subdirectory for each process (default: none)")
	fs.StringVar(&o.profile, "profile", "", "`directory` for CPU profiles of the node, one for each minute (default: none)")
	fs.BoolVar(&o.once, "once", false, "each kind once, without combinations and without a limit of time")
	fs.BoolVar(&o.list, "list", false, "list the kinds of faults and the invariants, and do nothing")
	fs.IntVar(&o.draw, "draw", 0, "print the first `rounds` of the seed, and do nothing")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	switch {
	case o.pods < 1 || o.pods > 100:
		return o, errors.New("--pods must be from 1 to 100: a node takes 110")
	case o.duration <= 0 || o.bound <= 0:
		return o, errors.New("--duration and --bound must be positive")
	case o.draw < 0:
		return o, errors.New("--draw must not be negative")
	}
	for name := range strings.SplitSeq(faults, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "all":
			o.kinds = kindNames()
		case kindNamed(name) == nil:
			return o, fmt.Errorf("--faults: unknown kind %q; see --list", name)
		case !slices.Contains(o.kinds, name):
			o.kinds = append(o.kinds, name)
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if o.containerd == "" {
		o.containerd = lab.FindContainerd()
	}
	return o, nil
}

// drawer returns the drawer of the rounds.
func (o options) drawer() *drawer {
	d := newDrawer(o.seed, o.kinds, o.pods)
	d.storms, d.short = !o.once, o.once
	return d
}
