package admission_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/allocation/admission"
)

// A pod requests three CPUs of a node with two, and selects another node.
func ExampleCheck() {
	node := admission.Node{Name: "edge-1", OS: "linux", Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi"),
	}}
	pod := new(v1.Pod)
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")},
	}}}
	for _, r := range admission.Check(pod, nil, node) {
		fmt.Printf("%s: %s\n", r.Reason, r.Message)
	}
	// Output:
	// OutOfcpu: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000
	// NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector
}
