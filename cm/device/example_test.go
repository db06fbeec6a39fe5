package device_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// Of three devices two are close to node 1, and the plugin prefers the second of them.
func ExampleChoose() {
	free := map[string]device.Device{
		"gpu0": {ID: "gpu0", Healthy: true, Nodes: topology.MaskOf(0)},
		"gpu1": {ID: "gpu1", Healthy: true, Nodes: topology.MaskOf(1)},
		"gpu2": {ID: "gpu2", Healthy: true, Nodes: topology.MaskOf(1)},
	}
	prefers := func(available, must []string, size int) []string { return []string{"gpu2"} }
	fmt.Println(device.Choose(free, nil, 1, topology.Hint{Nodes: topology.MaskOf(1)}, prefers))
	// Output: [gpu2]
}
