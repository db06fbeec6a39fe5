// Processes is a virtual-kubelet node whose pods are processes of this machine, with logs,
// exec, port-forward and statistics. It needs no container runtime and no root:
//
//	cd kube/provider/virtualkubelet
//	go run ./examples/processes -kubeconfig ~/.kube/config -node laptop
//
// A container is a command of the machine; package runtime/process describes its limits.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/virtualkubelet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/process"
)

func main() {
	if code, ok := process.Supervise(); ok { // this program also supervises each container
		os.Exit(code)
	}
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig `file`; the default is $KUBECONFIG, else the service account of the pod")
	name := flag.String("node", "processes", "the `name` of the node")
	dir := flag.String("dir", filepath.Join(os.TempDir(), "processes"), "the `directory` for state and logs")
	cert := flag.String("cert", "", "the `file` with the certificate of the HTTP server; without it, there are no logs, exec and port-forward")
	key := flag.String("key", "", "the `file` with the private key of the certificate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := nodeutil.ClientsetFromEnv(*kubeconfig)
	if err == nil {
		err = serve(ctx, client, *name, *dir, *cert, *key)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "processes:", err)
		os.Exit(1)
	}
}

// serve runs the node until ctx is done. Requests are authenticated and authorized by the
// API server.
func serve(ctx context.Context, client kubernetes.Interface, name, dir, cert, key string) error {
	auth, err := nodeutil.WebhookAuth(client, name)
	if err != nil {
		return err
	}
	return run(ctx, client, auth, name, dir, func(c *nodeutil.NodeConfig) error {
		if cert == "" {
			return nil
		}
		return nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(cert, key))(c)
	})
}

func run(ctx context.Context, client kubernetes.Interface, auth nodeutil.Auth, name, dir string, opt nodeutil.NodeOpt) error {
	rt, err := newRuntime(dir)
	if err != nil {
		return err
	}
	p, err := virtualkubelet.New(provider.Config{
		Runtime: rt, NodeName: name, HostIPs: func() []string { return []string{"127.0.0.1"} },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	n, err := p.NewNode(client, auth, func(c *nodeutil.NodeConfig) error {
		c.NodeSpec.Status.Capacity = v1.ResourceList{v1.ResourcePods: resource.MustParse("50")}
		c.NodeSpec.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}}
		return nil
	}, opt)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(ctx) })
	group.Go(func() error { return n.Run(ctx) })
	return group.Wait()
}

// newRuntime returns the runtime: package cri has the kubelet's semantics, over processes.
func newRuntime(dir string) (runtime.Runtime, error) {
	p, err := process.Open(process.Config{Dir: filepath.Join(dir, "process")})
	if err != nil {
		return nil, err
	}
	return cri.New(cri.Config{Name: process.Name, Runtime: p, Images: p, Dirs: cri.Dirs{Root: dir, PodLogs: filepath.Join(dir, "logs")}})
}
