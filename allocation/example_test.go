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

// A Manager allocates a pod's requests, and a resize once there is room.
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
		fmt.Println("granted", pod.Spec.Containers[0].Resources.Requests.Memory())
		for _, c := range m.State(pod.UID).Conditions() {
			fmt.Println(c.Type, c.Reason, c.Message)
		}
	}

	fmt.Println("refused:", m.Admit(ctx, webOf("512Mi")))
	show(m.Allocate(ctx, webOf("512Mi"), nil))
	bigger := webOf("2Gi")
	show(m.Allocate(ctx, bigger, nil))
	room.Set(4 << 30)
	m.Retry(ctx, allocation.PodTerminated)
	show(m.Allocated(bigger))
	// Output:
	// refused: <nil>
	// granted 512Mi
	// granted 512Mi
	// PodResizePending Deferred the node has 1Gi
	// granted 2Gi
	// PodResizeInProgress
}

// Steps keep the limits of the pod's cgroup above those of its containers.
func ExampleSteps() {
	for _, s := range allocation.Steps(webOf("1Gi"), webOf("512Mi"), runs("nginx")) {
		fmt.Println(s)
	}
	// Output:
	// container nginx: memory 1Gi/1Gi to 512Mi/512Mi
	// pod request: memory 1Gi/1Gi to 512Mi/1Gi
	// pod limit: memory 512Mi/1Gi to 512Mi/512Mi
}
