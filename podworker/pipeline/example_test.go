package pipeline_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// An Admitter rejects pods that use the network of the host. A Pipeline is a Handler, which
// podworker.Workers call; this example calls it directly.
func Example() {
	p, err := pipeline.New(pipeline.Config{
		Runtime: new(runtimetest.Runtime),
		Admission: pipeline.Admission{Admitter: pipeline.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
			if pod.Spec.HostNetwork {
				return &runtime.Rejection{Reason: "HostNetwork", Message: "pods have their own network here"}
			}
			return nil
		})},
		Record: func(e runtime.Event) { fmt.Println(e.Type, e.Reason, e.Message) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "web", Name: "web", Namespace: "default"}}
	pod.Spec.HostNetwork = true
	result, err := p.Sync(context.Background(), podworker.SyncRequest{UID: pod.UID, Pod: pod, First: true, Status: &runtime.PodStatus{UID: pod.UID}})
	fmt.Println(result.Terminal, result.Termination.Reason, err)
	// Output:
	// Warning HostNetwork pods have their own network here
	// true HostNetwork <nil>
}
