package memory_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// One of the two NUMA nodes of the machine has less than 80 GiB.
func Example() {
	root, err := topologytest.FS(topologytest.Description("xeon-2s"))
	if err != nil {
		log.Fatal(err)
	}
	machine, err := topology.Read(root)
	if err != nil {
		log.Fatal(err)
	}
	reserved := memory.Request{v1.ResourceMemory: 1 << 30}
	manager, err := memory.Open(memory.Config{
		Machine: machine, Policy: memory.Static, Reserved: map[int]memory.Request{0: reserved}, Total: reserved,
	})
	if err != nil {
		log.Fatal(err)
	}
	pod := new(v1.Pod)
	pod.UID = "0001"
	pod.Spec.Containers = []v1.Container{{Name: "db", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("80Gi"),
	}}}}
	err = manager.Allocate(context.Background(), pod, &pod.Spec.Containers[0], topology.Any())
	fmt.Println(manager.Nodes(pod.UID, "db"), err)
	// Output: 0,1 <nil>
}
