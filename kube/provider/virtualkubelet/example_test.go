package virtualkubelet_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/virtualkubelet"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A runtime and an API server in memory become a node that is ready.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	client, err := kubernetes.NewForConfig(new(apitest.Server).RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	p, err := virtualkubelet.New(provider.Config{Runtime: new(runtimetest.Runtime), NodeName: "virtual"})
	if err != nil {
		log.Fatal(err)
	}
	n, err := p.NewNode(client, nodeutil.NoAuth(), func(c *nodeutil.NodeConfig) error {
		c.NodeSpec.Status.Capacity = v1.ResourceList{v1.ResourcePods: resource.MustParse("100")}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Run(ctx) }()
	go func() { _ = n.Run(ctx) }()
	if err := n.WaitReady(ctx, time.Minute); err != nil {
		log.Fatal(err)
	}
	registered, err := client.CoreV1().Nodes().Get(ctx, "virtual", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(registered.Name, registered.Status.Capacity.Pods())
	stop()
	<-n.Done()
	fmt.Println(<-stopped)
	// Output:
	// virtual 100
	// <nil>
}
