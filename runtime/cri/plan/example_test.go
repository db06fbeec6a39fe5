package plan_test

import (
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A pod in the middle of its life: init is done, web runs an old image, and the
// log shipper has crashed for the third time.
func ExampleCompute() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "setup", Image: "busybox"}},
			Containers:     []v1.Container{{Name: "web", Image: "nginx:2"}, {Name: "log", Image: "fluent-bit"}},
		},
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	status := &runtime.PodStatus{
		UID:       "u1",
		Sandboxes: []runtime.SandboxStatus{{ID: "box", State: runtime.SandboxReady}},
		Containers: []runtime.ContainerStatus{{
			ID: "cri://c", Name: "log", SandboxID: "box", State: runtime.ContainerExited, RestartCount: 2,
			CreatedAt: noon.Add(-time.Minute), FinishedAt: noon, ExitCode: 1,
			Hash: plan.Hash(&pod.Spec.Containers[1]),
		}, {
			ID: "cri://b", Name: "web", SandboxID: "box", State: runtime.ContainerRunning,
			Hash: plan.Hash(&v1.Container{Name: "web", Image: "nginx:1"}),
		}, {
			ID: "cri://a", Name: "setup", SandboxID: "box", State: runtime.ContainerExited,
		}},
	}
	backoff, err := plan.NewBackoff(plan.BackoffConfig{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(plan.Compute(plan.Input{Pod: pod, Status: status, Backoff: backoff, Now: noon}))

	// Output:
	// stop container web (cri://b): Container web definition changed, will be restarted
	// start container web, restart 1: its definition changed
	// start container log, restart 3: it exited with 1, restart policy Always; not before 2026-01-01T12:00:20Z (back-off 20s)
}

// A plan is data as well as words.
func ExamplePlan() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "nginx"}}},
	}
	p := plan.Compute(plan.Input{Pod: pod})
	fmt.Println(p.CreateSandbox, p.Attempt)
	for _, s := range p.Start {
		fmt.Println(s.Kind, s.Name, s.Reason, s.RestartCount)
	}
	// Output:
	// true 0
	// container web New 0
}
