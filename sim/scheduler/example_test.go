package scheduler_test

import (
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/sim/scheduler"
)

// Two nodes have room for three pods that request three CPUs each.
func Example() {
	cluster := scheduler.NewCluster()
	for name, cpu := range map[string]string{"small": "4", "large": "8"} {
		node := new(v1.Node)
		node.Name = name
		node.Status.Allocatable = v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("110"),
		}
		cluster.SetNode(node)
	}
	for i := range 4 {
		pod := new(v1.Pod)
		pod.UID = types.UID(fmt.Sprint(i))
		pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")},
		}}}
		name, err := cluster.Place(pod)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(name)
		cluster.SetPod(pod, name)
	}
	if _, err := scheduler.NewCluster().Place(new(v1.Pod)); err == nil {
		log.Fatal("placed without nodes")
	}
	// Output:
	// large
	// large
	// small
	// 0/2 nodes are available: 2 Insufficient cpu.
}
