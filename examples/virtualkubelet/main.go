// Virtualkubelet shows the parts below a virtual-kubelet provider. What it plays is
// virtual-kubelet's side: it calls the methods that virtual-kubelet calls, in that
// order, and prints what it is told. It needs nothing and takes some seconds.
//
//	go run ./examples/virtualkubelet
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

	"github.com/kubeparts/kubeparts/examples/virtualkubelet/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
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
	var rt runtime.Runtime = flaky()
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
	// virtual-kubelet deletes the object now, and the provider forgets the pod.
	for {
		left, err := handler.GetPods(ctx)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
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

// flaky is a runtime in memory, whose container exits once and then runs.
func flaky() *runtimetest.Runtime {
	rt := new(runtimetest.Runtime)
	rt.Behave("web:1", runtimetest.Behaviour{
		Exit: &runtimetest.Exit{After: 300 * time.Millisecond, Code: 1}, Crashes: 1, StopDelay: 200 * time.Millisecond,
	})
	return rt
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
