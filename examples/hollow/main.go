// Hollow adds simulated nodes to a cluster, for testing schedulers and controllers at
// scale. Nothing is executed: the nodes register and renew their leases, and their pods
// behave as annotations declare (package kube/fakenode).
//
//	go run ./examples/hollow --kubeconfig ~/.kube/config --nodes 200
//	kubectl create deployment web --image=web --replicas=5000
//
// On interrupt the nodes and their pods are removed. Hundreds of nodes with thousands of
// pods run in one process; docs/benchmarks.md in the repository has the figures.
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
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig `file` of the cluster; required")
	count := flag.Int("nodes", 20, "`number` of nodes")
	name := flag.String("name", "hollow", "`prefix` of the names of the nodes")
	devices := flag.Int("devices", 0, "`number` of devices that each node has for resource claims, by the DRA driver "+driverName)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, *kubeconfig, *name, *count, *devices); err != nil {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		os.Exit(1)
	}
}

// start reads the kubeconfig and runs the nodes.
func start(ctx context.Context, kubeconfig, name string, count, devices int) error {
	if kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return run(ctx, config, name, count, devices, os.Stdout)
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
