package hollow

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// options are the flags.
type options struct {
	kubeconfig string
	lab        bool
	nodes      int
	pods       int
	name       string
	schedule   bool
	ownWatches bool
	length     time.Duration
	profile    string
	program    string
	steady     bool
}

const usageText = `hollow runs simulated nodes with pods against a real API server and measures them.

  go run ./test hollow --lab                                 starts etcd, an API server, the controllers
                                                    and the scheduler, and stops them afterwards
  go run ./test hollow --kubeconfig=FILE --nodes=20 --pods=200    uses an existing cluster
  go run ./test hollow --lab --steady --program='kwok --kubeconfig={kubeconfig} --config=stages.yaml
      --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake'    measures another program,
                                                    with Node objects as for kwok

The nodes and the namespace of the pods are named after --name, and are removed at the
end and on interrupt. Of every 20 pods one crashes 30 s after each start, one exits with
code 0 after a minute (both are restarted with back-off), one is alternately ready and
not ready for 20 s; the others run, with --steady all.

--lab needs the programs in the directory KUBEBUILDER_ASSETS, as envtest does (and a
kube-controller-manager and a kube-scheduler), or built by "bash .ci/run kubernetes".
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("hollow", flag.ContinueOnError)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` for access to the API server, with rights to create nodes, pods and leases")
	fs.BoolVar(&o.lab, "lab", false, "start a control plane")
	fs.IntVar(&o.nodes, "nodes", 200, "`number` of nodes")
	fs.IntVar(&o.pods, "pods", 5000, "`number` of pods, at most 110 per node")
	fs.StringVar(&o.name, "name", "hollow", "`name` of the namespace, and prefix of the names of the nodes")
	fs.BoolVar(&o.schedule, "schedule", false, "let the cluster's scheduler assign pods to nodes, instead of round robin")
	fs.BoolVar(&o.ownWatches, "own-watches", false, "a watch of pods for each node, as real nodes have, instead of a shared one")
	fs.DurationVar(&o.length, "for", time.Minute, "`duration` of the measurement")
	fs.StringVar(&o.profile, "profile", "", "`file` to write a heap profile to, for go tool pprof")
	fs.StringVar(&o.program, "program", "", "`command` that runs the nodes in place of this process, such as examples/hollow --adopt; {kubeconfig} is replaced by the file")
	fs.BoolVar(&o.steady, "steady", false, "all pods run, none crashes, exits or becomes unready")
	if err := cli.Parse(fs, args, usageText, stdout); err != nil {
		return o, err
	}
	switch {
	case o.lab == (o.kubeconfig != ""):
		return o, errors.New("either --kubeconfig or --lab is required; see --help")
	case o.nodes < 1:
		return o, errors.New("--nodes must be positive")
	case o.pods < 0 || o.pods > 110*o.nodes:
		return o, fmt.Errorf("--pods must be from 0 to %d, 110 per node", 110*o.nodes)
	case o.program != "" && (o.profile != "" || o.ownWatches):
		return o, errors.New("--profile and --own-watches are of the nodes in this process, not of --program")
	case o.length <= 0:
		return o, errors.New("--for must be positive")
	}
	return o, nil
}
