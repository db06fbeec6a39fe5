package main

import (
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
)

// resizes returns what makes a resize infeasible on this node (al-10).
func (c connected) resizes(k kubeletconfig.KubeletConfiguration) allocation.NodeFacts {
	facts := allocation.NodeFacts{NoResize: c.noResize}
	if c.managers != nil {
		facts.StaticCPU = cpu.Policy(k.CPUManagerPolicy) == cpu.Static
		facts.StaticMemory = memory.Policy(k.MemoryManagerPolicy) == memory.Static
		facts.Swaps = c.facts.Swaps
	}
	return facts
}
