//go:build unix

package starts

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
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
	probes     int
	fill       int
	inFlight   []int
	latency    time.Duration
	containerd bool
	only       []string
	agent      string // binary; empty: it is built
	kubelet    string // binary
	scratch    string
	report     string
	profiles   string
}

const usage = `starts measures how long pods take to start on the complete node (examples/kubelet), on
a real kubelet, and with a CRI client that only makes the calls of a start, one after the
other, on a CRI runtime in memory whose calls take times of a real one. The API server is
one in memory, too. Phases, on the same node:

  alone          one pod after the other, each deleted before the next
  fill           pods created at once, which stay
  N in flight    twice N pods, N of them at a time: a pod that runs is deleted, and the next
                 one created

A pod is bound when the API server has created it with the name of its node.

  bash hack/kubelet.sh v1.37.2              builds the kubelet, once
  go run ./test starts
  go run ./test starts --only kubeparts --in-flight 200
  go run ./test starts --containerd --fill 50 --in-flight 1,50

It requires Linux and root, and with --containerd the results of '.ci/run packages
containerd'. Each node runs in namespaces of its own.
`

const (
	agentName   = "kubeparts"
	kubeletName = "kubelet"
	bareName    = "bare client"
)

var subjects = []string{agentName, kubeletName, bareName}

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	var inFlight, only string
	fs := flag.NewFlagSet("starts", flag.ContinueOnError)
	fs.IntVar(&o.probes, "alone", 10, "`number` of pods that are started alone")
	fs.IntVar(&o.fill, "fill", 110, "`number` of pods that are created at once")
	fs.StringVar(&inFlight, "in-flight", "1,50,200", "`numbers` of pods that start at a time, one phase each")
	fs.DurationVar(&o.latency, "latency", 20*time.Millisecond, "`time` of the calls that create and start a container, up to twice that; a sandbox takes five times as long, calls that read 1 ms")
	fs.BoolVar(&o.containerd, "containerd", false, "use a containerd instead of a runtime in memory; its network has 1,020 addresses")
	fs.StringVar(&only, "only", strings.Join(subjects, ","), "`names` of the programs that are measured")
	fs.StringVar(&o.agent, "agent", "", "`binary` of the complete node (default: it is built)")
	fs.StringVar(&o.kubelet, "kubelet", "", "`binary` of the kubelet (default: that of hack/kubelet.sh "+lab.KubernetesVersion+")")
	fs.StringVar(&o.scratch, "scratch", "", "`directory` for temporary files, with a short path (default: that of the system)")
	fs.StringVar(&o.report, "report", "", "`file` to write the tables to, in Markdown, as well")
	fs.StringVar(&o.profiles, "profiles", "", "`directory` for profiles of the nodes: cpu of the first 10s of each phase, and allocs (default: none)")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	for field := range strings.FieldsFuncSeq(inFlight, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 || n > 500 {
			return o, fmt.Errorf("--in-flight=%q: %q is not a number from 1 to 500", inFlight, field)
		}
		o.inFlight = append(o.inFlight, n)
	}
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(subjects, name) {
			return o, fmt.Errorf("--only=%q: %q is not one of %q", only, name, subjects)
		}
		o.only = append(o.only, name)
	}
	if o.probes < 0 || o.fill < 0 || o.fill > 1000 || o.latency < 0 {
		return o, errors.New("--alone and --latency must not be negative, and --fill must be from 0 to 1000")
	}
	if o.profiles != "" { // for a program with another working directory
		var err error
		if o.profiles, err = filepath.Abs(o.profiles); err != nil {
			return o, err
		}
	}
	if slices.Contains(o.only, kubeletName) {
		var err error
		o.kubelet, err = labenv.FindKubelet(o.kubelet)
		return o, err
	}
	return o, nil
}

// args returns the flags that measure one program in namespaces of its own.
func (o options) args(subject string) []string {
	var inFlight []string
	for _, n := range o.inFlight {
		inFlight = append(inFlight, strconv.Itoa(n))
	}
	return []string{
		"starts", "--only=" + subject, "--agent=" + o.agent, "--kubelet=" + o.kubelet, fmt.Sprintf("--alone=%d", o.probes),
		fmt.Sprintf("--fill=%d", o.fill), "--in-flight=" + strings.Join(inFlight, ","), fmt.Sprintf("--latency=%v", o.latency), "--profiles=" + o.profiles, fmt.Sprintf("--containerd=%t", o.containerd),
	}
}
