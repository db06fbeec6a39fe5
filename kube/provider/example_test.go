package provider_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// virtual-kubelet's pod controller makes these calls.
func Example() {
	p, err := provider.New(provider.Config{Runtime: new(runtimetest.Runtime)})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	statuses := make(chan v1.PodStatus, 100)
	p.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
	stopped := make(chan error)
	go func() { stopped <- p.Run(ctx) }()

	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "6f1e"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "web:1"}}},
	}
	if err := p.CreatePod(ctx, pod); err != nil {
		log.Fatal(err)
	}
	for s := range statuses {
		if status.IsReady(&s) {
			fmt.Println(s.Phase)
			break
		}
	}
	if err := p.DeletePod(ctx, pod); err != nil {
		log.Fatal(err)
	}
	for s := range statuses {
		if ended := s.ContainerStatuses[0].State.Terminated; ended != nil {
			fmt.Println("exit code", ended.ExitCode)
			break
		}
	}
	cancel()
	fmt.Println(<-stopped)
	// Output:
	// Running
	// exit code 143
	// <nil>
}
