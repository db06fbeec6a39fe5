package runtime_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A countingRuntime counts the calls of SyncPod.
type countingRuntime struct {
	runtime.Runtime
	syncs atomic.Int64
}

func (c *countingRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	c.syncs.Add(1)
	return c.Runtime.SyncPod(ctx, req)
}

// Unwrap keeps the optional interfaces of the wrapped Runtime.
func (c *countingRuntime) Unwrap() any { return c.Runtime }

// A wrapper intercepts SyncPod; commands still run in the containers.
func ExampleAs() {
	ctx := context.Background()
	counting := &countingRuntime{Runtime: new(runtimetest.Runtime)}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	if _, err := counting.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); err != nil {
		log.Fatal(err)
	}
	status, err := counting.PodStatus(ctx, pod.UID)
	if err != nil {
		log.Fatal(err)
	}

	execer, ok := compose.As[runtime.Execer](counting)
	if !ok {
		log.Fatal("no exec")
	}
	result, err := execer.Exec(ctx, status.Container("nginx").ID, []string{"echo", "hello"}, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("exit code %d after %d SyncPod\n", result.ExitCode, counting.syncs.Load())
	// Output:
	// exit code 0 after 1 SyncPod
}
