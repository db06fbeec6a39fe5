package fakenode_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/client/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A created pod is bound to a node, runs, becomes ready, and terminates.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	api := new(apitest.Server) // in memory; the rest.Config of a real one works too
	nodes, err := fakenode.New(api.RESTConfig(), fakenode.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- nodes.Run(ctx) }()
	if err := nodes.Wait(ctx); err != nil {
		log.Fatal(err)
	}

	api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default", Annotations: map[string]string{fakenode.Annotation: "exit=3@100ms"}},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "job:1"}}},
	})
	pod := api.Pod("default", "job")
	for pod.Status.Phase != v1.PodFailed {
		time.Sleep(10 * time.Millisecond)
		pod = api.Pod("default", "job")
	}
	fmt.Println("on", pod.Spec.NodeName, "it ended with code", pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	cancel()
	fmt.Println("the nodes ended with", <-ended)
	// Output:
	// on fake-0 it ended with code 3
	// the nodes ended with <nil>
}

func ExampleParseBehavior() {
	b, err := fakenode.ParseBehavior("exit=1@5s,ready=2s")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.ReadyAfter, b.Exit.Code, b.Exit.After)
	_, err = fakenode.ParseBehavior("ready=soon")
	fmt.Println(err)
	// Output:
	// 2s 1 5s
	// fakenode: behavior "ready=soon": "ready=soon": "soon" is not a duration, such as 2s or 1m30s
}
