package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/images"
)

// options are the flags.
type options struct {
	focus  string
	skip   string
	all    bool
	procs  int
	tools  string
	logs   string
	report string
}

const usage = `conformance runs Kubernetes' node conformance tests against the complete node
(examples/kubelet), as the only node of a cluster that it starts: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler and containerd are real.

  go run ./test/conformance                            all tests without the excluded ones
  go run ./test/conformance --focus 'Probing container'
  go run ./test/conformance --skip '\[Slow\]' --procs 2

It requires Linux, root, and the results of 'bash .ci/run packages containerd kubernetes'
and 'bash .ci/run conformance-tools', which builds the suite from Kubernetes' source.
test/conformance/excluded.txt lists the excluded tests with reasons.

The exit code is 1 if a test failed, and 2 if the tests could not be run.

Flags:
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	fs.StringVar(&o.focus, "focus", `\[NodeConformance\]`, "`pattern` of the names of the tests that are run")
	fs.StringVar(&o.skip, "skip", "", "`pattern` of the names of tests that are not run, in addition to the excluded ones")
	fs.BoolVar(&o.all, "all", false, "run the excluded tests as well")
	fs.IntVar(&o.procs, "procs", 10, "`number` of tests that run concurrently")
	fs.StringVar(&o.tools, "tools", "", "`directory` of the suite and its programs (default: that of .ci/run)")
	fs.StringVar(&o.logs, "logs", "", "`directory` for the logs of the suite, the node and containerd (default: they are removed)")
	fs.StringVar(&o.report, "report", "", "`file` to write a report to, in Markdown")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	if o.procs < 1 {
		return o, errors.New("--procs must be positive")
	}
	if o.tools == "" {
		dir, err := toolsDir()
		if err != nil {
			return o, fmt.Errorf("find the directory of the suite (see --tools): %w", err)
		}
		o.tools = dir
	}
	for _, name := range []string{suiteName, ginkgoName, images.Agnhost} {
		if _, err := os.Stat(filepath.Join(o.tools, name)); err != nil {
			return o, fmt.Errorf("%w; bash .ci/run conformance-tools builds it", err)
		}
	}
	return o, nil
}

// Programs that .ci/run conformance-tools builds.
const (
	suiteName  = "node.test"
	ginkgoName = "ginkgo"
)

func toolsDir() (string, error) {
	cache, err := lab.CacheDir()
	return filepath.Join(cache, "conformance-"+lab.KubernetesVersion), err
}
