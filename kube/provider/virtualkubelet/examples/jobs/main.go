// Jobs is a virtual-kubelet node whose pods are jobs of a queue:
//
//	cd kube/provider/virtualkubelet
//	go run ./examples/jobs -kubeconfig ~/.kube/config -wait 10s -run 1m
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/kube/provider/virtualkubelet"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig `file`")
	name := flag.String("node", "jobs", "the `name` of the node")
	wait := flag.Duration("wait", 10*time.Second, "how long a job is in the queue")
	duration := flag.Duration("run", time.Minute, "how long a job runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := nodeutil.ClientsetFromEnv(*kubeconfig)
	if err != nil {
		log.Fatal("jobs: ", err)
	}
	service := &queue{wait: *wait, program: func(string) (time.Duration, int32) { return *duration, 0 }, jobs: map[string]*job{}}
	if err := run(ctx, client, nodeutil.NoAuth(), *name, service); err != nil && ctx.Err() == nil {
		log.Fatal("jobs: ", err)
	}
}

// run runs the node until ctx is done. It serves HTTP only if an option sets TLSConfig, as in
// the example processes; then auth must be nodeutil.WebhookAuth.
func run(ctx context.Context, client kubernetes.Interface, auth nodeutil.Auth, name string, service jobs.Service, opts ...nodeutil.NodeOpt) error {
	rt, err := jobs.New(jobs.Config{Service: service})
	if err != nil {
		return err
	}
	p, err := virtualkubelet.New(provider.Config{Runtime: rt, NodeName: name})
	if err != nil {
		return err
	}
	n, err := p.NewNode(client, auth, append(opts, func(c *nodeutil.NodeConfig) error {
		c.NodeSpec.Status.Capacity = v1.ResourceList{v1.ResourcePods: resource.MustParse("1000")}
		return nil
	})...)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(ctx) })
	group.Go(func() error { return n.Run(ctx) })
	return group.Wait()
}
