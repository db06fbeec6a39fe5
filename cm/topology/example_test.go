package topology_test

import (
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// A machine of two NUMA nodes has CPUs free in both, and a device in the second.
func ExampleMerge() {
	root, err := topologytest.FS(topologytest.Description("xeon-2s"))
	if err != nil {
		log.Fatal(err)
	}
	machine, err := topology.Read(root)
	if err != nil {
		log.Fatal(err)
	}
	cpus := topology.Hints{"cpu": {{Nodes: topology.MaskOf(0), Preferred: true}, {Nodes: topology.MaskOf(1), Preferred: true}}}
	gpu := topology.Hints{"gpu": {{Nodes: topology.MaskOf(1), Preferred: true}}}
	best, admitted := topology.Merge(machine, topology.SingleNUMANode, topology.Options{}, []topology.Hints{gpu, cpus})
	fmt.Printf("node %s, admitted: %v\n", best.Nodes, admitted)
	// Output: node 1, admitted: true
}
