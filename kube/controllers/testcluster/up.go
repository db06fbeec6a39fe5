package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// An options is what the flags of up select.
type options struct {
	nodes       int
	controllers bool
	address     string
	kubeconfig  string
	collection  string
	duration    time.Duration
}

func parseUp(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("testcluster up", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.nodes, "nodes", 1, "`number` of simulated nodes")
	flags.BoolVar(&o.controllers, "controllers", false, "run the controllers of kube-controller-manager, and kube-scheduler")
	flags.StringVar(&o.address, "address", "127.0.0.1:0", "`address` of the API server; everyone who reaches it can change everything")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to write; default: one in a temporary directory, which is removed at the end")
	flags.StringVar(&o.collection, "garbage-collection", "", "`mode`: when dependents of deleted objects and the contents of namespaces are deleted: "+
		"async, as in a cluster; sync, before the response; off, not at all. Default: async; with --controllers off, because they do it")
	flags.DurationVar(&o.duration, "for", 0, "`time` after which the cluster ends; default: when it is interrupted")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.nodes < 0:
		return o, errors.New("--nodes is negative")
	case o.collection != "":
	case o.controllers:
		o.collection = "off"
	default:
		o.collection = "async"
	}
	return o, nil
}

// up runs a cluster until ctx is done.
func up(ctx context.Context, args []string, out, log io.Writer) error {
	o, err := parseUp(args, out)
	if err != nil {
		return err
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	klog.SetOutput(io.Discard) // of libraries; errors are returned
	klog.LogToStderr(false)
	begun := time.Now()
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("%w: set --address to another one, or to 127.0.0.1:0", err)
	}
	defer listener.Close()
	if o.kubeconfig == "" {
		dir, err := os.MkdirTemp("", "testcluster-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	if err := writeKubeconfig(o.kubeconfig, "http://"+listener.Addr().String()); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return runCluster(ctx, o, listener, begun, out, log)
}

// runCluster runs the parts of a cluster, each until ctx is done or another part fails.
func runCluster(ctx context.Context, o options, listener net.Listener, begun time.Time, out, log io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	api, err := newServer(o.collection)
	if err != nil {
		return err
	}
	config := api.RESTConfig()
	config.QPS = -1
	nodes, kubelets, err := newNodes(config, o, log)
	if err != nil {
		return err
	}
	stop, err := apiserver.Start(context.WithoutCancel(ctx), api, apiserver.Config{Kubelet: kubelets})
	if err != nil {
		return err
	}
	defer stop()
	var parts sync.WaitGroup
	part := func(name string, run func() error) {
		parts.Go(func() {
			if err := run(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("API server", func() error { return serve(ctx, listener, api, nil) })
	if o.controllers {
		_, _ = fmt.Fprintln(log, "starting the controllers and the scheduler")
		part("controllers", func() error {
			return controllers.Run(ctx, config, controllers.Config{Scheduler: true})
		})
	}
	if o.nodes > 0 {
		_, _ = fmt.Fprintf(log, "starting %d nodes\n", o.nodes)
		if err := startNodes(ctx, api, nodes, part); err != nil {
			cancel(err)
		}
	}
	if ctx.Err() == nil {
		_, _ = fmt.Fprintf(log, "ready after %v; interrupt with Ctrl-C\n", time.Since(begun).Round(time.Millisecond))
		_, _ = fmt.Fprintf(out, "export KUBECONFIG=%s\n", o.kubeconfig)
	}
	<-ctx.Done()
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// newNodes returns the simulated nodes, and the kubelet's API of each by its name.
func newNodes(config *rest.Config, o options, log io.Writer) (*fakenode.Nodes, func(string) http.Handler, error) {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	nodes, err := fakenode.New(config, fakenode.Config{
		Nodes: fakenode.Many(o.nodes, fakenode.Node{Name: "node"}), NoScheduler: o.controllers, API: fakenode.API{QPS: -1}, Logger: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	kubelets, err := hollow.Kubelets(nodes, logger)
	return nodes, kubelets, err
}

// startNodes starts the nodes and the API of their resource metrics, and waits until they are ready.
func startNodes(ctx context.Context, api *apitest.Server, nodes *fakenode.Nodes, part func(string, func() error)) error {
	if err := api.Aggregate(hollow.Metrics(nodes)); err != nil {
		return err
	}
	part("nodes", func() error { return nodes.Run(ctx) })
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return nodes.Wait(wait)
}

// writeKubeconfig writes a kubeconfig without credentials.
func writeKubeconfig(file, server string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["testcluster"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{}
	config.Contexts["testcluster"] = &clientcmdapi.Context{Cluster: "testcluster", AuthInfo: "admin"}
	config.CurrentContext = "testcluster"
	return clientcmd.WriteToFile(*config, file)
}
