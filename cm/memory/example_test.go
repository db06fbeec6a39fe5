package memory_test

import (
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// 80 GiB are more than one of two nodes has.
func ExampleChoose() {
	root, err := topologytest.FS(topologytest.Description("xeon-2s"))
	if err != nil {
		log.Fatal(err)
	}
	machine, err := topology.Read(root)
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := memory.Choose(memory.Empty(machine, nil), memory.Request{v1.ResourceMemory: 80 << 30}, nil, topology.Any())
	fmt.Println(nodes, err)
	// Output: 0,1 <nil>
}
