// Virtualkubelet is a virtual-kubelet provider in 30 lines: package kube/provider over a
// runtime.Runtime. In place of virtual-kubelet, the program makes the calls that its pod
// controller makes, and prints the reported statuses.
//
//	go run ./examples/virtualkubelet
//
// A real provider passes the same value to virtual-kubelet: kube/provider/virtualkubelet, a
// module of its own, has the node with its HTTP server, and complete providers of less than
// 120 lines in its directory examples: processes of the host, and jobs of a queue.
//
// The runtime here is in memory. Package runtime/cri implements runtime.Runtime for
// containerd, runtime/process for processes, runtime/containers for an API of machines, and
// kube/provider/jobs for a service that runs jobs.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "virtualkubelet:", err)
		os.Exit(1)
	}
}

// podController is the part of virtual-kubelet's interfaces that a provider implements:
// node.PodLifecycleHandler and node.PodNotifier.
type podController interface {
	CreatePod(ctx context.Context, pod *v1.Pod) error
	UpdatePod(ctx context.Context, pod *v1.Pod) error
	DeletePod(ctx context.Context, pod *v1.Pod) error
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error)
	GetPods(context.Context) ([]*v1.Pod, error)
	NotifyPods(context.Context, func(*v1.Pod))
}

// run creates a pod that crashes once, waits until it is ready again, and deletes it.
func run(ctx context.Context, out io.Writer) error {
	rt := new(runtimetest.Runtime)
	rt.Behave("web:1", fake.Behavior{
		Exit: &fake.Exit{After: 300 * time.Millisecond, Code: 1, Crashes: 1}, StopDelay: 200 * time.Millisecond,
	})
	p, err := provider.New(provider.Config{Runtime: rt, NodeName: "virtual"})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- p.Run(ctx) }()
	if err := control(ctx, p, out); err != nil {
		return err
	}
	stop()
	return <-stopped
}

// control makes virtual-kubelet's calls.
func control(ctx context.Context, p podController, out io.Writer) error {
	statuses := make(chan v1.PodStatus, 100)
	p.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "6f1e"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []v1.Container{{Name: "app", Image: "web:1"}},
		},
	}
	if err := p.CreatePod(ctx, pod); err != nil {
		return err
	}
	restarted := func(s v1.PodStatus) bool { return status.IsReady(&s) && s.ContainerStatuses[0].RestartCount == 1 }
	if err := await(statuses, restarted, out); err != nil {
		return err
	}

	fmt.Fprintln(out, "kubectl delete pod web")
	pod.DeletionTimestamp = new(metav1.Now())
	if err := p.DeletePod(ctx, pod); err != nil {
		return err
	}
	terminated := func(s v1.PodStatus) bool { return s.ContainerStatuses[0].State.Terminated != nil }
	return await(statuses, terminated, out)
}

// await prints statuses until one satisfies the condition.
func await(statuses <-chan v1.PodStatus, condition func(v1.PodStatus) bool, out io.Writer) error {
	timeout := time.After(time.Minute)
	for {
		select {
		case s := <-statuses:
			fmt.Fprintln(out, "web", status.Summary(&s))
			if condition(s) {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("no such status within a minute")
		}
	}
}
