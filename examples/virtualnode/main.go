// Virtualnode is a node of a cluster whose containers are machines of a VM service. It is a kubelet:
// init containers, restarts, probes, statuses, logs, exec and statistics are those of any other node.
// machines.go adapts the API of the service, an instance of which is in the test of the program.
//
//	go run ./examples/virtualnode --service /run/vms.sock --kubeconfig node.conf --node-name vms
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

const usage = `Usage: virtualnode --service SOCKET --kubeconfig FILE --node-name NAME [flags]

A node of a cluster whose containers are machines of a VM service. Stopping the program leaves
the machines running; the next start with the same --root-dir and --node-name adopts them.

Only pods that tolerate the taint of the node are scheduled there:
  tolerations: [{key: kubeparts.io/runtime, value: machines, effect: NoSchedule}]
Pods that mount volumes, other than the default token, are rejected.
Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "virtualnode:", err)
		os.Exit(1)
	}
}

// run runs the node until ctx is done. The machines keep running.
func run(ctx context.Context, args []string, out io.Writer) error {
	c := &kubeletconfig.KubeletConfiguration{EvictionHard: map[string]string{}} // pods do not use the disk of this machine
	cfg := kubelet.Config{Configuration: c, Logger: slog.New(slog.NewTextHandler(out, nil))}
	fs := flag.NewFlagSet("virtualnode", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() { fmt.Fprint(out, usage); fs.PrintDefaults() }
	service := fs.String("service", "", "`socket` of the VM service; required")
	port := fs.Int("port", 10250, "`port` of the node's API, for kubectl logs and exec; -1 selects one")
	fs.StringVar(&cfg.NodeName, "node-name", "", "`name` of the node; required")
	fs.StringVar(&cfg.RootDir, "root-dir", "/var/lib/virtualnode", "`directory` of the state and of the consoles of machines")
	fs.StringVar(&cfg.Cluster.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the node; required")
	fs.StringVar(&c.Authentication.X509.ClientCAFile, "client-ca-file", "", "`file` with the CA of the clients of the node's API")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *service == "" || cfg.NodeName == "" || cfg.Cluster.Kubeconfig == "" {
		return errors.New("--service, --node-name and --kubeconfig are required; see --help")
	}
	c.Port, c.HealthzPort = int32(*port), new(int32)
	vms := newMachines(*service)
	cfg.Runtime = kubelet.Runtime{Name: "machines", Node: vms, New: func(engine cri.Config) (runtime.Runtime, error) {
		support := containers.Support{SeparateContainers: true}
		return containers.New(containers.Config{Backend: vms, Node: cfg.NodeName, Engine: engine, Support: support})
	}}
	k, err := kubelet.Open(ctx, cfg)
	if err != nil {
		return err
	}
	return k.Run(ctx)
}
