// Virtualkubelet shows the parts in a virtual-kubelet provider, above and below. What it
// plays is virtual-kubelet's side: it calls the methods that virtual-kubelet calls, in
// that order, and prints what it is told. It needs nothing and takes some seconds.
//
//	go run ./examples/virtualkubelet
//
// For a provider of your own, copy
//
//   - provider: what virtual-kubelet calls, over any runtime.Runtime. There is nothing
//     to change in it but what your pods may be (provider.Config.Admit).
//   - cloud: a runtime.Runtime over a backend that takes whole pods. Put your backend's
//     client behind cloud.API; cloud's documentation says what else is yours.
//   - cloud/conformance_test.go: the test that says which promise your backend breaks.
//
// cloud/fakecloud is the backend that is missing here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/examples/virtualkubelet/cloud"
	"github.com/kubeparts/kubeparts/examples/virtualkubelet/cloud/fakecloud"
	"github.com/kubeparts/kubeparts/examples/virtualkubelet/provider"
	"github.com/kubeparts/kubeparts/status"
)

func main() {
	if err := play(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "virtualkubelet:", err)
		os.Exit(1)
	}
}

// podLifecycleHandler and podNotifier are virtual-kubelet's, word for word.
type podLifecycleHandler interface {
	CreatePod(ctx context.Context, pod *v1.Pod) error
	UpdatePod(ctx context.Context, pod *v1.Pod) error
	DeletePod(ctx context.Context, pod *v1.Pod) error
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error)
	GetPods(context.Context) ([]*v1.Pod, error)
}

type podNotifier interface {
	NotifyPods(context.Context, func(*v1.Pod))
}

// play runs a pod that crashes once, serves, and is deleted.
func play(ctx context.Context, out io.Writer) error {
	backend := flaky()
	rt, err := cloud.New(cloud.Config{Cloud: backend, Node: "virtual"})
	if err != nil {
		return err
	}
	p, err := provider.New(provider.Config{Runtime: rt})
	if err != nil {
		return err
	}
	var handler podLifecycleHandler = p
	told := make(chan v1.PodStatus, 100)
	podNotifier(p).NotifyPods(ctx, func(pod *v1.Pod) { told <- pod.Status })

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	pod := web()
	if err := handler.CreatePod(ctx, pod); err != nil {
		return err
	}
	until := func(what string, want func(v1.PodStatus) bool) error {
		for {
			select {
			case said := <-told:
				fmt.Fprintln(out, "web", status.Summary(&said))
				if want(said) {
					return nil
				}
			case <-time.After(time.Minute):
				return fmt.Errorf("a minute without word that web has %s", what)
			}
		}
	}
	err = until("been restarted", func(s v1.PodStatus) bool { return status.IsReady(&s) && s.ContainerStatuses[0].RestartCount == 1 })
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "kubectl delete pod web")
	pod.DeletionTimestamp = new(metav1.Now())
	if err := handler.DeletePod(ctx, pod); err != nil {
		return err
	}
	err = until("ended", func(s v1.PodStatus) bool { return s.ContainerStatuses[0].State.Terminated != nil })
	if err != nil {
		return err
	}
	// virtual-kubelet deletes the object now, the provider forgets the pod, and its
	// machine is destroyed.
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left, err := handler.GetPods(ctx)
		if err != nil {
			return err
		}
		machines, err := backend.ListMachines(ctx, nil)
		if err != nil {
			return err
		}
		if len(left)+len(machines) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after two minutes there are %d pods and %d machines left", len(left), len(machines))
		}
	}
	_, err = handler.GetPod(ctx, pod.Namespace, pod.Name)
	unknown, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	fmt.Fprintln(out, "gone:", ok && unknown.NotFound())
	stop()
	return <-ended
}

// flaky is a cloud in memory, on which a process exits once and then runs.
func flaky() *fakecloud.Cloud {
	c := &fakecloud.Cloud{Latency: 5 * time.Millisecond, Boot: 500 * time.Millisecond, Launch: 100 * time.Millisecond}
	c.Behave("web:1", fakecloud.Program{After: 300 * time.Millisecond, Code: 1, Crashes: 1, Stop: 200 * time.Millisecond})
	return c
}

func web() *v1.Pod {
	grace := int64(5)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("6f1e")},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{Name: "app", Image: "web:1"}},
		},
	}
}
