//go:build unix

package footprint

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// options are the flags.
type options struct {
	pods     []int
	repeat   int
	settle   time.Duration
	window   time.Duration
	kills    int
	cluster  bool
	trace    bool
	contend  bool
	only     []string
	agent    string // binary; empty: it is built
	kubelet  string // binary
	logs     string
	profiles string
	report   string
}

const usage = `footprint measures the complete node (examples/kubelet) and a real kubelet, one after
the other, on a real containerd, with the same configuration and the same pods. A CRI
client that only creates these pods is the lower bound of the time that they take, and
of the CPU time of a client.

  bash hack/kubelet.sh v1.37.2                    builds the kubelet, once
  hack/footprint.sh --compare                     0, 50, 110 and 250 pods, static
  hack/footprint.sh --compare --cluster           the same as pods of an API server
  hack/footprint.sh --compare --pods 0,10 --window 20s
  hack/footprint.sh --compare --trace --pods 110  where the time of the starts goes
  GODEBUG=memprofilerate=4096 hack/footprint.sh --compare --trace --pods 110 --profiles DIR
                                                  and the memory of the idle node

  hack/footprint.sh --compare --contention        how pods of each class share the CPUs

Each row is measured with a new containerd. Pods exist before the program starts; times
count from its start. It requires Linux, root, and the results of
'bash .ci/run packages containerd', with --cluster those of 'bash .ci/run kubernetes' too.
`

const (
	agentName   = "kubeparts"
	kubeletName = "kubelet"
	bareName    = "bare client"
)

var subjects = []string{agentName, kubeletName, bareName}

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	var pods, only string
	fs := flag.NewFlagSet("footprint", flag.ContinueOnError)
	fs.StringVar(&pods, "pods", "0,50,110,250", "`numbers` of pods, one measurement each")
	fs.IntVar(&o.repeat, "repeat", 1, "`number` of runs; with more than one, the table has minimum, median and maximum")
	fs.DurationVar(&o.settle, "settle", 40*time.Second, "`time` between the start of the last pod and the idle window")
	fs.DurationVar(&o.window, "window", time.Minute, "length of the idle window")
	fs.IntVar(&o.kills, "kills", 10, "`number` of containers that are killed, each of another pod")
	fs.BoolVar(&o.cluster, "cluster", false, "use pods of an API server instead of static ones")
	fs.BoolVar(&o.trace, "trace", false, "run the complete node in this process and print where the time until all pods run goes, and nothing else")
	fs.BoolVar(&o.contend, "contention", false, "measure how pods that compete for all CPUs share them during --window, and nothing else")
	fs.StringVar(&only, "only", strings.Join(subjects, ","), "`names` of the programs that are measured")
	fs.StringVar(&o.agent, "agent", "", "`binary` of the complete node (default: it is built)")
	fs.StringVar(&o.kubelet, "kubelet", "", "`binary` of the kubelet (default: that of hack/kubelet.sh "+lab.KubernetesVersion+")")
	fs.StringVar(&o.logs, "logs", "", "`directory` for the programs' logs (default: they are removed)")
	fs.StringVar(&o.profiles, "profiles", "", "`directory` for profiles of --trace: cpu, allocs, mutex and block of the starts, idle and heap of the idle window, which is followed by a table of the memory in use by allocation site (default: none)")
	fs.StringVar(&o.report, "report", "", "`file` to write the table to, in Markdown, as well")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	for field := range strings.SplitSeq(pods, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 || n > 1000 {
			return o, fmt.Errorf("--pods=%q: %q is not a number from 0 to 1000", pods, field)
		}
		o.pods = append(o.pods, n)
	}
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(subjects, name) {
			return o, fmt.Errorf("--only=%q: %q is not one of %q", only, name, subjects)
		}
		o.only = append(o.only, name)
	}
	switch {
	case o.trace && o.cluster:
		return o, errors.New("--trace: pods are static; omit --cluster")
	case o.contend && (o.cluster || o.trace):
		return o, errors.New("--contention: omit --cluster and --trace")
	case o.repeat < 1:
		return o, errors.New("--repeat must be positive")
	case o.settle < 0 || o.window < time.Second:
		return o, errors.New("--settle must not be negative, and --window at least 1s")
	case o.kills < 0:
		return o, errors.New("--kills must not be negative")
	}
	if slices.Contains(o.only, kubeletName) && !o.trace {
		var err error
		o.kubelet, err = labenv.FindKubelet(o.kubelet)
		return o, err
	}
	return o, nil
}
