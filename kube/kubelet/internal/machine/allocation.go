package machine

import (
	"context"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

type allocationDeps struct {
	Runtime  PodRuntime
	NoResize string // why containers cannot be resized in place; "" if they can
	node     func() admission.Node
	object   *stores.NodeObject
	read     func(context.Context) (*v1.Node, error)
	devices  func(v1.ResourceName) bool
}

// newAllocation constructs the manager of allocated resources, which also decides whether
// pods fit the node.
func newAllocation(b stores.Base, d allocationDeps) (*allocation.Manager, error) {
	facts := allocation.NodeConstraints{NoResize: d.NoResize}
	if stores.HostContainers(b.Config) { // rule al-10
		facts.StaticCPU = cpu.Policy(b.Configuration.CPUManagerPolicy) == cpu.Static
		facts.StaticMemory = memory.Policy(b.Configuration.MemoryManagerPolicy) == memory.Static
		facts.Swaps = d.Runtime.Facts.MaySwap
	}
	node := nodeAdmission{Machine: d.node, Object: d.object, Read: d.read, Leaving: b.Pods.Leaving, Devices: d.devices}
	cfg := allocation.Config{
		Dir: filepath.Join(b.Config.RootDir, "allocation"), Node: facts, InitContainers: true,
		Admit: node.Admit, Refresh: node.Refresh, Pods: b.Pods,
		Hooks: b.Metrics.Allocation(), Record: b.Record, Logger: b.Logger,
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	return allocation.Open(cfg)
}
