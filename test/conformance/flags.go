package conformance

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/images"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// options are the flags.
type options struct {
	kind   kind
	focus  string
	skip   string
	all    bool
	procs  int
	tools  string
	logs   string
	report string

	selected func(test string) bool // by focus and skip
}

const usage = `conformance runs Kubernetes' node conformance tests, or its tests of dynamic resource
allocation, against the complete node (examples/kubelet), as the only node of a cluster that
it starts: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and containerd are
real.

  go run ./test conformance                            all tests without the excluded ones
  go run ./test conformance --focus 'Probing container'
  go run ./test conformance --skip '\[Slow\]' --procs 2
  go run ./test conformance --suite dra

It requires Linux, root, and the results of 'bash .ci/run packages containerd kubernetes'
and 'bash .ci/run conformance-tools' or 'bash .ci/run dra-tools', which build the suites from
Kubernetes' source. test/conformance/excluded.txt and excluded-dra.txt list the excluded tests
with reasons.

The exit code is 1 if a test failed, and 2 if the tests could not be run.
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	suite := fs.String("suite", "node", "`name` of the suite: node or dra")
	fs.StringVar(&o.focus, "focus", "", "`pattern` of the names of the tests that are run (default: [NodeConformance], or [Feature:DynamicResourceAllocation] with dra)")
	fs.StringVar(&o.skip, "skip", "", "`pattern` of the names of tests that are not run, in addition to the excluded ones")
	fs.BoolVar(&o.all, "all", false, "run the excluded tests as well")
	fs.IntVar(&o.procs, "procs", 0, "`number` of tests that run concurrently (default: 10, or 4 with dra)")
	fs.StringVar(&o.tools, "tools", "", "`directory` of the suite and its programs (default: that of .ci/run)")
	fs.StringVar(&o.logs, "logs", "", "`directory` for the logs of the suite, the node and containerd (default: they are removed)")
	fs.StringVar(&o.report, "report", "", "`file` to write a report to, in Markdown")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	if o.procs < 0 {
		return o, errors.New("--procs must be positive")
	}
	var err error
	if o.kind, err = kindOf(*suite); err != nil {
		return o, err
	}
	o.focus, o.procs = cmp.Or(o.focus, o.kind.focus), cmp.Or(o.procs, o.kind.procs)
	if o.selected, err = selection(o.focus, o.skip); err != nil {
		return o, err
	}
	if o.tools == "" {
		if o.tools, err = labenv.Cached("conformance-" + lab.KubernetesVersion); err != nil {
			return o, fmt.Errorf("find the directory of the suite (see --tools): %w", err)
		}
	}
	return o, labenv.Require("bash .ci/run "+o.kind.step, o.tools, o.kind.binary, ginkgoName, images.Agnhost)
}

// ginkgoName is a program that .ci/run builds with the suites.
const ginkgoName = "ginkgo"
