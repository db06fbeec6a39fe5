package e2enode

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/images"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A subject is a program that is tested.
type subject string

const (
	kubelet subject = "kubelet" // the control
	agent   subject = "agent"   // examples/kubelet
)

// options are the flags.
type options struct {
	focus           *regexp.Regexp
	labels, skip    string
	subjects        []subject
	agent           string // file; empty: it is built
	procs, lanes    int
	missing         bool // only tests without a result
	unmeasurable    bool // only tests that the usual machine cannot run
	timeout         time.Duration
	tools           string // ginkgo, and the programs of images
	kubernetes      string // the kubelet and its suite
	emulated        string // in the machine of modern: address of the registry of the suite's images
	logs            string
	results, report string
	merge           string // file of results of the machine of modern
}

const usage = `e2enode runs Kubernetes' tests of the kubelet, test/e2e_node, against a real kubelet and
against the complete node, examples/kubelet, one after the other, and compares the results.

  go run ./test e2enode                            the tests of node conformance
  go run ./test e2enode --focus 'MirrorPod'
  go run ./test e2enode --subjects agent --focus 'Container Lifecycle'

It requires Linux, root, the ports 6443, 10248, 10250 and 10255, no other kubelet in
/var/lib/kubelet, and the results of 'bash .ci/run containerd conformance-images' and
'bash hack/kubelet.sh VERSION kubelet e2e_node'. The files next to the program contain:

  differences.txt     tests that the agent does not pass and the kubelet does, with the reasons
  not-measurable.txt  tests that are not run on this kind of machine, with the reasons
  not-emulated.txt    the same for the emulated machine: 'go run ./test modern e2enode --focus …'

Results of earlier runs are kept in e2enode/results.tsv of the cache of .ci/run. The exit code is 1 if
a difference has no reason, or a reason in the files applies to nothing, and 2 if the tests could not be run.
`

func parseFlags(args []string, stdout io.Writer) (o options, err error) {
	var focus, subjects string
	fs := flag.NewFlagSet("e2enode", flag.ContinueOnError)
	fs.StringVar(&focus, "focus", `\[NodeConformance\]`, "`pattern` of the names of the tests that are run")
	fs.StringVar(&o.skip, "skip", "", "`pattern` of the names of tests that are not run")
	fs.StringVar(&o.labels, "labels", "", "ginkgo's label `filter`, such as '!Serial && !Slow'")
	fs.StringVar(&subjects, "subjects", "kubelet,agent", "`programs` that are tested, in this order; empty: only the report is written")
	fs.StringVar(&o.agent, "agent", "", "`file` of the agent (default: it is built)")
	fs.IntVar(&o.procs, "procs", 8, "`number` of tests that run concurrently; those that are labeled Serial never do")
	fs.IntVar(&o.lanes, "lanes", 2, "`number` of parts of the selected tests that run at the same time, each with programs, ports and cgroups of its own")
	fs.BoolVar(&o.missing, "missing", false, "run only tests of which the file of results has no result with the program yet")
	fs.BoolVar(&o.unmeasurable, "unmeasurable", false, "with --emulated: run only tests that are not measurable on a machine with cgroup v1 and without systemd")
	fs.DurationVar(&o.timeout, "timeout", 3*time.Hour, "`time` after which remaining tests of a program are not run")
	fs.StringVar(&o.tools, "tools", "", "`directory` of ginkgo and agnhost (default: that of .ci/run)")
	fs.StringVar(&o.kubernetes, "kubernetes", "", "`directory` of kubelet and e2e_node.test (default: that of hack/kubelet.sh)")
	fs.StringVar(&o.emulated, "emulated", "", "this is the machine of 'go run ./test modern': `address` of the registry of the suite's images")
	fs.StringVar(&o.logs, "logs", filepath.Join(os.TempDir(), "e2enode"), "`directory` for logs and ginkgo's reports")
	fs.StringVar(&o.results, "results", "", "`file` of the latest result of each test, which is updated (default: in the cache of .ci/run)")
	fs.StringVar(&o.merge, "merge", "", "only add the results of 'go run ./test modern e2enode', a `file`, to those in the repository, and write their report")
	fs.StringVar(&o.report, "report", "docs/e2e-node.md", "`file` to write the report to")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	for name := range strings.FieldsFuncSeq(subjects, func(r rune) bool { return r == ',' }) {
		s := subject(name)
		if s != kubelet && s != agent {
			return o, fmt.Errorf("--subjects: unknown program %q: want kubelet or agent", name)
		}
		o.subjects = append(o.subjects, s)
	}
	if o.focus, err = regexp.Compile(focus); err != nil {
		return o, fmt.Errorf("--focus: %w", err)
	}
	if o.procs < 1 {
		return o, errors.New("--procs must be positive")
	}
	if o.lanes < 1 {
		return o, errors.New("--lanes must be positive")
	}
	if o.results == "" {
		if o.results, err = labenv.Cached("e2enode", "results.tsv"); err != nil {
			return o, fmt.Errorf("find the file of results (see --results): %w", err)
		}
	}
	if o.unmeasurable && o.emulated == "" {
		return o, errors.New("--unmeasurable requires --emulated")
	}
	if len(o.subjects) == 0 || o.merge != "" {
		return o, nil
	}
	return o, o.findPrograms()
}

// findPrograms sets the directories that no flag names, and checks that they contain the programs.
func (o *options) findPrograms() error {
	cache, err := lab.CacheDir()
	if err != nil && (o.tools == "" || o.kubernetes == "") {
		return fmt.Errorf("find the directory of the suite (see --tools and --kubernetes): %w", err)
	}
	if o.tools == "" {
		o.tools = filepath.Join(cache, "conformance-"+lab.KubernetesVersion)
	}
	if o.kubernetes == "" {
		o.kubernetes = filepath.Join(cache, "kubelet-"+lab.KubernetesVersion)
	}
	tools := []string{ginkgoName}
	if o.emulated == "" {
		tools = append(tools, images.Agnhost, images.NoNewPrivs, images.DevicePlugin)
	}
	return errors.Join(
		labenv.Require("bash .ci/run conformance-images", o.tools, tools...),
		labenv.Require("bash hack/kubelet.sh "+lab.KubernetesVersion+" kubelet e2e_node", o.kubernetes, suiteName, string(kubelet)))
}

const (
	suiteName  = "e2e_node.test"
	ginkgoName = "ginkgo"
)
