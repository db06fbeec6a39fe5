package kubelet

import (
	"context"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/compose"
)

type allocationDeps struct {
	runtime  podRuntime
	noResize string // why containers cannot be resized in place; "" if they can
	total    capacity
	object   *nodeObject
	read     func(context.Context) (*v1.Node, error)
	devices  func(v1.ResourceName) bool
}

// newAllocation constructs the manager of allocated resources, which also decides whether
// pods fit the node.
func newAllocation(b base, d allocationDeps) (*allocation.Manager, error) {
	facts := allocation.NodeConstraints{NoResize: d.noResize}
	if !b.cfg.Runtime.Processes { // rule al-10
		facts.StaticCPU = cpu.Policy(b.k.CPUManagerPolicy) == cpu.Static
		facts.StaticMemory = memory.Policy(b.k.MemoryManagerPolicy) == memory.Static
		facts.Swaps = d.runtime.facts.MaySwap
	}
	cfg := allocation.Config{
		Dir: filepath.Join(b.cfg.RootDir, "allocation"), Node: facts, InitContainers: true,
		Admit: admitOn(admissionNode(b, d.total.allocatable), d.object, d.read, b.pods.leaving, d.devices), SourcesReady: b.pods.Synced, Changed: b.pods.PodChanged,
		Hooks: b.metrics.Allocation(), Record: b.record, Logger: b.logger,
	}
	if err := compose.Apply(b.cfg.Adjust, "Allocation", &cfg); err != nil {
		return nil, err
	}
	return allocation.Open(cfg)
}
