package runtime_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A pod is inspected and synced until it runs, then killed.
func Example() {
	ctx := context.Background()
	var rt runtime.Runtime = new(runtimetest.Runtime)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	for {
		status, err := rt.PodStatus(ctx, pod.UID)
		if err != nil {
			log.Fatal(err)
		}
		res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: status})
		if err != nil {
			log.Fatal(err)
		}
		if len(res.Actions) == 0 { // nothing is left to do
			break
		}
		for _, a := range res.Actions {
			fmt.Println(a.Kind, a.Target)
		}
	}
	if err := rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod}); err != nil {
		log.Fatal(err)
	}
	status, err := rt.PodStatus(ctx, pod.UID)
	if err != nil {
		log.Fatal(err)
	}
	nginx := status.Container("nginx")
	fmt.Println(nginx.Name, nginx.State, "with", nginx.ExitCode)
	// Output:
	// CreatePodSandbox web_default
	// StartContainer nginx
	// nginx exited with 143
}
