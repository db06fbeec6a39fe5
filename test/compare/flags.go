//go:build unix

package compare

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// options are the flags.
type options struct {
	focus   string
	skip    string
	kubelet string
	agent   string
	save    string
	from    string
	report  string
	all     bool
	// controlPlanes is a directory with access to control planes that run already.
	controlPlanes string
	config        map[string]any // fields of the KubeletConfiguration in addition to the usual ones
}

const usage = `compare runs the pods of test/compare/corpus on a real kubelet and on the complete node
(examples/kubelet), one after the other, each on a containerd and with an API server of its
own, and compares the requests to containerd, pod statuses, events, cgroups, files and logs.

  go run ./test compare                                all pods
  go run ./test compare --focus 'probes|volumes'       those of some files of the corpus
  go run ./test compare --save /tmp/runs               keep what was observed
  go run ./test compare --from /tmp/runs --all         compare it again, without running

It requires Linux, root, and the results of 'bash .ci/run packages containerd kubernetes'
and 'bash hack/kubelet.sh ` + lab.KubernetesVersion + `'. KUBEPARTS_CONTAINERD names the containerd.
test/compare/reasons.txt lists the known differences with the reasons.

The exit code is 1 if a difference has no reason or a reason no difference, and 2 if the nodes
could not be observed.
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.StringVar(&o.focus, "focus", "", "`pattern` of the names of files of the corpus")
	fs.StringVar(&o.skip, "skip", "", "`pattern` of the names of pods that are not run")
	fs.StringVar(&o.kubelet, "kubelet", "", "`file` of the kubelet (default: that of hack/kubelet.sh)")
	fs.StringVar(&o.agent, "agent", "", "`file` of the agent (default: it is built)")
	fs.StringVar(&o.save, "save", "", "`directory` to write what was observed, and the logs, to")
	fs.StringVar(&o.from, "from", "", "`directory` of a run with --save, which is compared instead of a new one")
	fs.StringVar(&o.report, "report", "", "`file` to write a report to, in Markdown")
	fs.BoolVar(&o.all, "all", false, "print the explained differences as well")
	fs.StringVar(&o.controlPlanes, "control-planes", "", "`directory` of the kubeconfig files of control planes that run already (see go run ./test modern; default: they are started)")
	fs.Func("config", "fields of the KubeletConfiguration as `JSON`, such as '{\"cpuManagerPolicy\": \"static\"}'", func(text string) error {
		return json.Unmarshal([]byte(text), &o.config)
	})
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	if o.from != "" && (o.save != "" || o.focus != "" || o.skip != "") {
		return o, errors.New("--from cannot be used with --save, --focus and --skip")
	}
	if o.from != "" {
		return o, nil
	}
	if o.save != "" {
		if err := os.MkdirAll(o.save, 0o755); err != nil {
			return o, err
		}
	}
	var err error
	if o.kubelet, err = labenv.FindKubelet(o.kubelet); err != nil {
		return o, err
	}
	_, err = corpus(o.focus, o.skip)
	return o, err
}
