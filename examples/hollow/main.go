// Hollow adds simulated nodes to a cluster, for testing schedulers, autoscalers and controllers
// at scale. Nothing is executed: the nodes register and renew their leases, and their pods
// behave as annotations declare (package kube/fakenode).
//
//	go run ./examples/hollow --kubeconfig ~/.kube/config --nodes 200
//	kubectl create deployment web --image=web --replicas=5000
//
// On interrupt the nodes and their pods are removed. Hundreds of nodes with thousands of
// pods run in one process; docs/benchmarks.md in the repository has the figures.
//
// With --adopt it takes the place of kwok's controller: it runs the Node objects that others
// create, and leaves them when it ends (package kube/hollow). docs/hollow.md describes it, also
// in a cluster and in several processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		os.Exit(1)
	}
}

// start reads the flags and the kubeconfig, and runs the nodes.
func start(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("hollow", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file` of the cluster; in a cluster the service account is the default")
	count := flags.Int("nodes", 20, "`number` of nodes that are created")
	name := flags.String("name", "hollow", "`prefix` of the names of these nodes")
	devices := flags.Int("devices", 0, "`number` of devices that each of them has for resource claims, by the DRA driver "+driverName)
	var a adoption
	flags.BoolVar(&a.enabled, "adopt", false, "run the Node objects that others create, and create none")
	flags.StringVar(&a.selects.Annotations, "select-annotations", "", "`selector` of their annotations; the default is kwok.x-k8s.io/node=fake, or the label type=kwok")
	flags.StringVar(&a.selects.Labels, "select-labels", "", "`selector` of their labels, as an alternative to that of annotations")
	flags.StringVar(&a.behaviors, "behaviors", "", "YAML `file` with behaviors of pods, or Stages of kwok")
	flags.StringVar(&a.shard.Group, "group", "", "`name` of a group of processes that share the nodes")
	flags.StringVar(&a.shard.Namespace, "namespace", "", "`namespace` of the leases of the group; that of the pod by default")
	flags.StringVar(&a.shard.Identity, "identity", "", "`name` of this process in the group; the host name by default")
	flags.DurationVar(&a.shard.Duration, "lease-duration", 0, "`time` after which the nodes of a process that has died are run by others; 10s by default")
	flags.StringVar(&a.ip, "ip", "", "`address` of this machine or pod, at which the kubelet API of each node is served on a port of its own; not served by default")
	flags.DurationVar(&a.length, "for", 0, "`time` after which the program ends; it does not by default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if a.enabled {
		return adopt(ctx, config, a, out)
	}
	return run(ctx, config, *name, *count, *devices, out)
}

// driverName is the simulated DRA driver of nodes with devices.
const driverName = "hollow.example.com"

// drivers returns the driver of a node with that many devices; nil for none.
func drivers(devices int) []fakenode.Driver {
	if devices <= 0 {
		return nil
	}
	d := fakenode.Driver{Name: driverName}
	for i := range devices {
		d.Devices = append(d.Devices, resourceapi.Device{Name: fmt.Sprint("device-", i)})
	}
	return []fakenode.Driver{d}
}

// run runs nodes until ctx is done and removes them afterwards.
func run(ctx context.Context, config *rest.Config, name string, count, devices int, out io.Writer) error {
	nodes, err := fakenode.New(config, fakenode.Config{
		Nodes:       fakenode.Many(count, fakenode.Node{Name: name, Drivers: drivers(devices)}),
		NoScheduler: true, // the cluster has one
		Behaviors:   map[string]fake.Behavior{"crash": {Exit: &fake.Exit{Code: 1, After: 30 * time.Second}}},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() {
		stopped <- nodes.Run(ctx)
		stop()
	}()
	if err := nodes.Wait(ctx); err == nil {
		fmt.Fprintf(out, "%d nodes are ready; interrupt to remove them\n", count)
	}
	err = <-stopped

	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	return errors.Join(err, nodes.Remove(cleanup))
}
