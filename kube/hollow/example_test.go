package hollow_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// A node that was created for kwok runs a pod, which behaves as the rules specify.
func Example() {
	rules, err := hollow.ParseRules(`
rules:
- images: ["batch:*"]
  behavior: exit=3@100ms
`)
	if err != nil {
		log.Fatal(err)
	}
	api := new(apitest.Server) // in memory; the rest.Config of a cluster works too
	nodes, err := hollow.New(api.RESTConfig(), hollow.Config{Rules: rules})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- nodes.Run(ctx) }()

	api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kwok-node-0", Labels: map[string]string{"type": "kwok"}}})
	api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "batch", Namespace: "default"},
		Spec:       v1.PodSpec{NodeName: "kwok-node-0", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "batch:1"}}},
	})
	pod := api.Pod("default", "batch")
	for pod.Status.Phase != v1.PodFailed {
		time.Sleep(10 * time.Millisecond)
		pod = api.Pod("default", "batch")
	}
	fmt.Println("exit code", pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// exit code 3
	// <nil>
}
