package fakenode_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/kube/apitest"
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

// A pod with a ResourceClaim runs when the claim is allocated to a device of the node, as a
// kube-scheduler does. The node publishes the device.
func ExampleDriver() {
	ctx, cancel := context.WithCancel(context.Background())
	api := new(apitest.Server)
	driver := fakenode.Driver{
		Name: "gpu.example.com", Devices: []resourceapi.Device{{Name: "gpu-0"}},
		Called: func(_ context.Context, method string, claim dra.ClaimRef) error {
			fmt.Println(method, claim)
			return nil
		},
	}
	nodes, err := fakenode.New(api.RESTConfig(), fakenode.Config{Nodes: []fakenode.Node{{Name: "n1", Drivers: []fakenode.Driver{driver}}}})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- nodes.Run(ctx) }()

	api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "default", UID: "1"},
		Spec: v1.PodSpec{
			ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("mine")}},
			Containers:     []v1.Container{{Name: "main", Image: "train:1", Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "gpu"}}}}},
		},
	})
	api.Put(&resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "default", UID: "2"},
		Status: resourceapi.ResourceClaimStatus{
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: "1"}},
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example.com", Pool: "n1", Device: "gpu-0"}},
			}},
		},
	})
	for api.Pod("default", "train").Status.Phase != v1.PodRunning {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("running, published:", api.Get("resourceslices", "", "n1-gpu.example.com-0") != nil)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// NodePrepareResources default/mine
	// running, published: true
	// <nil>
}
