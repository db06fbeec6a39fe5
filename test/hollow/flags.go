package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// options are what a person can choose.
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
}

const usage = `hollow runs simulated nodes with pods against a real API server.

  hollow --lab                                      starts etcd, an API server, the controllers
                                                    and the scheduler for itself, and ends them
  hollow --kubeconfig=FILE --nodes=20 --pods=200    uses a cluster that there is

The nodes, and a namespace with the pods, have the name that --name says, and are
removed in the end, also when it is interrupted. Of every 20 pods one crashes 30 s
after each start, one exits with 0 after a minute (both are restarted, with back-off),
one is ready for 20 s and then not for 20 s, and so on; the others run.

For --lab the programs have to be there: KUBEBUILDER_ASSETS names their directory, as
with envtest (with a kube-controller-manager and a kube-scheduler beside), or
"bash .ci/run kubernetes" builds them.

Flags:
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("hollow", flag.ContinueOnError)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API server is; its user may make nodes, pods and leases")
	fs.BoolVar(&o.lab, "lab", false, "start a control plane instead")
	fs.IntVar(&o.nodes, "nodes", 200, "how `many` nodes")
	fs.IntVar(&o.pods, "pods", 5000, "how `many` pods, at most 110 a node")
	fs.StringVar(&o.name, "name", "hollow", "`name` of the namespace, and of the nodes, with a number after it")
	fs.BoolVar(&o.schedule, "schedule", false, "leave it to the cluster's scheduler on which node a pod is; else they are made on them in turn")
	fs.BoolVar(&o.ownWatches, "own-watches", false, "a watch of pods for each node, as real nodes have, instead of one for all")
	fs.DurationVar(&o.length, "for", time.Minute, "how `long` to measure when all pods run")
	fs.StringVar(&o.profile, "profile", "", "`file` to write a profile of the memory to, for go tool pprof")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	switch {
	case o.lab == (o.kubeconfig != ""):
		return o, errors.New("either --kubeconfig or --lab says where the API server is; see --help")
	case o.nodes < 1:
		return o, errors.New("--nodes is below 1")
	case o.pods < 0 || o.pods > 110*o.nodes:
		return o, fmt.Errorf("--pods is to be from 0 to %d, which is 110 a node", 110*o.nodes)
	case o.length <= 0:
		return o, errors.New("--for is not above 0")
	}
	return o, nil
}
