package topologytest_test

import (
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

func ExampleFS() {
	root, err := topologytest.FS("cpus 0-3\nsmt +2\nnode 0 0-3 8Gi")
	if err != nil {
		log.Fatal(err)
	}
	machine, err := topology.Read(root)
	fmt.Println(machine.All(), machine.ThreadsPerCore(), machine.Nodes[0].MemoryBytes>>30, err)
	// Output: 0-3 2 8 <nil>
}
