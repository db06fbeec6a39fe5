package cgroups_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func Example() {
	name := cgroups.Name{"kubepods", "burstable", "pod12-34"}
	fmt.Println(name.Path(cgroups.Cgroupfs))
	fmt.Println(name.Path(cgroups.Systemd))

	limits := cgroups.Resources{CPUShares: new(cgroups.Shares(500)), Memory: new(int64(64 << 20))}
	for _, version := range []int{1, 2} {
		facts := cgroups.Facts{Version: version, Controllers: []string{"cpu", "memory"}}
		for _, s := range facts.Settings(limits) {
			fmt.Println(s.File, s.Value)
		}
	}
	// Output:
	// /kubepods/burstable/pod12-34
	// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice
	// cpu.shares 512
	// memory.limit_in_bytes 67108864
	// cpu.weight 20
	// memory.max 67108864
}
