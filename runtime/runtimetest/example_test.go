package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A test makes containers exit and inspects the pod afterwards.
func Example() {
	ctx := context.Background()
	rt := new(runtimetest.Runtime)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	for range 2 {
		if _, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); err != nil {
			log.Fatal(err)
		}
		if err := rt.Exit("a1", "nginx", 1); err != nil {
			log.Fatal(err)
		}
	}
	status, err := rt.PodStatus(ctx, "a1")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range status.Containers {
		fmt.Println(c.Name, c.State, c.ExitCode, "after", c.RestartCount, "restarts")
	}
	// Output:
	// nginx exited 1 after 1 restarts
	// nginx exited 1 after 0 restarts
}

// A call can take effect although its response is lost, as when it times out. A caller
// that retries must not start a second container.
func ExampleRuntime_Inject() {
	ctx := context.Background()
	rt := new(runtimetest.Runtime)
	rt.Inject(func(c fake.Call) fake.Fault {
		if c.Method != "SyncPod" {
			return fake.Fault{}
		}
		return fake.Fault{Lost: true, Err: errors.New("deadline exceeded")}
	})
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	fmt.Println(err)

	rt.Inject(nil)
	res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(res.Actions), "actions the second time")
	// Output:
	// deadline exceeded
	// 0 actions the second time
}

// The checks that run for a runtime without optional interfaces and a suite without
// options.
func ExampleChecks() {
	plain := 0
	for _, c := range runtimetest.Checks() {
		if len(c.Needs) == 0 {
			plain++
		}
		if c.Name == "KillIsIdempotent" {
			fmt.Println(c.Requirement)
		}
	}
	fmt.Println(plain > 30)
	// Output:
	// Killing a pod that does not run, or that does not exist, is not an error.
	// true
}
