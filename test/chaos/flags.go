package main

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

// options are what a person can choose.
type options struct {
	duration   time.Duration
	pods       int
	seed       uint64
	kinds      []string
	bound      time.Duration
	containerd string
	report     string
	logs       string
	once       bool
	list       bool
	draw       int
}

const usage = `chaos runs the reference agent as a node of a real cluster, on a real containerd,
while faults happen, and checks the laws of the simulation on the real thing.

  go run ./test/chaos                        50 pods, 10 minutes, a seed of its own
  go run ./test/chaos --seed 7               the rounds of that seed again
  go run ./test/chaos --once --pods 10       each fault once, then an end
  go run ./test/chaos --faults shim-killed,agent-killed --duration 2m
  go run ./test/chaos --draw 20 --seed 7     say what would be done, and do nothing

It needs Linux, root, a containerd with its shim and ctr beside it, runc, CNI
plugins, busybox, etcd and Kubernetes' programs; docs/integration.md says how to get
them. It uses none of the machine's own: containerd, cluster, network, cgroups and
file systems are made for the run, and are gone after it, also after Ctrl-C.

It exits with 1 if a law was broken, and with 2 if it could not be done.

Flags:
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	var faults string
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.DurationVar(&o.duration, "duration", 10*time.Minute, "how `long` faults happen; the last round is brought to its end")
	fs.IntVar(&o.pods, "pods", 50, "how many `pods` there are at a time")
	fs.Uint64Var(&o.seed, "seed", 0, "`number` that the rounds are drawn from (0: another one each time; it is printed)")
	fs.StringVar(&faults, "faults", "all", "`kinds` of faults, with commas; --list names them")
	fs.DurationVar(&o.bound, "bound", 3*time.Minute, "how `long` it may take after the last fault of a round until all is well")
	fs.StringVar(&o.containerd, "containerd", "", "the `program` (default: KUBEPARTS_CONTAINERD, what .ci/run has built, or the one in PATH)")
	fs.StringVar(&o.report, "report", "", "`file` to write a report to, in Markdown")
	fs.StringVar(&o.logs, "logs", "", "`directory` for what the agent and containerd say (default: it goes with the run)")
	fs.BoolVar(&o.once, "once", false, "each kind once, however long it takes, and no two at once")
	fs.BoolVar(&o.list, "list", false, "list the kinds of faults and the laws, and do nothing")
	fs.IntVar(&o.draw, "draw", 0, "list the first `rounds` of the seed, and do nothing")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	switch {
	case o.pods < 1 || o.pods > 100:
		return o, errors.New("--pods is from 1 to 100: a node takes 110")
	case o.duration <= 0 || o.bound <= 0:
		return o, errors.New("--duration and --bound are more than zero")
	case o.draw < 0:
		return o, errors.New("--draw is not negative")
	}
	for name := range strings.SplitSeq(faults, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "all":
			o.kinds = kindNames()
		case kindNamed(name) == nil:
			return o, fmt.Errorf("--faults: there is no kind %q; --list names them", name)
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

// drawer draws the rounds that o asks for.
func (o options) drawer() *drawer {
	d := newDrawer(o.seed, o.kinds, o.pods)
	d.storms, d.short = !o.once, o.once
	return d
}
