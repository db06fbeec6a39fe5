package cpu_test

import (
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// Two CPUs of a desktop of four cores are the threads of one.
func ExampleTake() {
	root, err := topologytest.FS(topologytest.Description("desktop-1s"))
	if err != nil {
		log.Fatal(err)
	}
	machine, err := topology.Read(root)
	if err != nil {
		log.Fatal(err)
	}
	cpus, err := cpu.Take(machine, cpu.Options{}, machine.All(), 2)
	fmt.Println(cpus, err)
	// Output: 0,4 <nil>
}
