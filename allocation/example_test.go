package allocation_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

func webOf(memory string) *v1.Pod {
	q := v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "42", Name: "web", Namespace: "default"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Resources: v1.ResourceRequirements{Requests: q, Limits: q}}}},
	}
}

// A Manager allocates the requested resources to a pod, and a resize when there is room.
func Example() {
	room := resource.MustParse("1Gi")
	m, err := allocation.Open(allocation.Config{
		Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
			if req.Pod.Spec.Containers[0].Resources.Requests.Memory().Cmp(room) > 0 {
				return &runtime.Rejection{Reason: "OutOfmemory", Message: "the node has " + room.String()}
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	show := func(pod *v1.Pod) {
		fmt.Println("allocated", pod.Spec.Containers[0].Resources.Requests.Memory())
		for _, c := range m.ResizeState(pod.UID).Conditions() {
			fmt.Println(c.Type, c.Reason, c.Message)
		}
	}

	fmt.Println("rejection:", m.Admit(ctx, webOf("512Mi")))
	show(m.Allocate(ctx, webOf("512Mi"), nil))
	bigger := webOf("2Gi")
	show(m.Allocate(ctx, bigger, nil))
	room.Set(4 << 30)
	m.Retry(ctx, "pod_terminated")
	show(m.Allocated(bigger))
	// Output:
	// rejection: <nil>
	// allocated 512Mi
	// allocated 512Mi
	// PodResizePending Deferred the node has 1Gi
	// allocated 2Gi
	// PodResizeInProgress
}

// The pod's cgroup is never smaller than its containers during a resize.
func ExamplePlanResize() {
	for _, s := range allocation.PlanResize(webOf("1Gi"), webOf("512Mi"), runs("nginx")) {
		fmt.Println(s)
	}
	// Output:
	// container nginx: memory 1Gi/1Gi to 512Mi/512Mi
	// pod request: memory 1Gi/1Gi to 512Mi/1Gi
	// pod limit: memory 512Mi/1Gi to 512Mi/512Mi
}
