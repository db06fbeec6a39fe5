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
)

// options are what a person can choose.
type options struct {
	focus  string
	skip   string
	all    bool
	procs  int
	tools  string
	logs   string
	report string
}

const usage = `conformance runs Kubernetes' node conformance tests against the reference agent, as
the only node of a cluster of its own: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and containerd are real.

  go run ./test/conformance                            all tests that this machine can do
  go run ./test/conformance --focus 'Probing container'
  go run ./test/conformance --skip '\[Slow\]' --procs 2

It needs Linux, root, and what 'bash .ci/run packages containerd kubernetes' and
'bash .ci/run conformance-tools' make: the suite itself is built from Kubernetes' own
source. What is left out, and why, is in test/conformance/excluded.txt.

It exits with 1 if a test failed, and with 2 if it could not be done.

Flags:
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	fs.StringVar(&o.focus, "focus", `\[NodeConformance\]`, "`pattern` of the names of the tests that are run")
	fs.StringVar(&o.skip, "skip", "", "`pattern` of the names of tests that are not run, besides those excluded")
	fs.BoolVar(&o.all, "all", false, "leave nothing out: the machine may be able to do what others could not")
	fs.IntVar(&o.procs, "procs", 10, "how many `tests` run at a time")
	fs.StringVar(&o.tools, "tools", "", "`directory` of the suite and its programs (default: where .ci/run has built them)")
	fs.StringVar(&o.logs, "logs", "", "`directory` for what the suite, the agent and containerd say (default: it goes with the run)")
	fs.StringVar(&o.report, "report", "", "`file` to write a table to, in Markdown")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	if o.procs < 1 {
		return o, errors.New("--procs is 1 or more")
	}
	if o.tools == "" {
		dir, err := toolsDir()
		if err != nil {
			return o, fmt.Errorf("where the suite is: %w; say it with --tools", err)
		}
		o.tools = dir
	}
	for _, name := range []string{suiteName, ginkgoName, agnhostName} {
		if _, err := os.Stat(filepath.Join(o.tools, name)); err != nil {
			return o, fmt.Errorf("%w; bash .ci/run conformance-tools builds it", err)
		}
	}
	return o, nil
}

// What .ci/run conformance-tools builds.
const (
	suiteName   = "node.test"
	ginkgoName  = "ginkgo"
	agnhostName = "agnhost"
	nnpName     = "nonewprivs"
)

func toolsDir() (string, error) {
	cache, err := lab.CacheDir()
	return filepath.Join(cache, "conformance-"+lab.KubernetesVersion), err
}
