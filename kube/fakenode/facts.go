package fakenode

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

// kubeletVersion is the kubelet version in the node status.
const kubeletVersion = "v1.37.2+kubeparts-fake"

// facts returns the facts of the node status.
func (a *agent) facts() node.Facts {
	return node.Facts{
		Addresses: func(context.Context) ([]v1.NodeAddress, error) {
			return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: a.address()}, {Type: v1.NodeHostName, Address: a.spec.Name}}, nil
		},
		Machine: node.Machine{Capacity: func() (v1.ResourceList, error) { return a.spec.Capacity, nil }},
		Info: func(context.Context) (v1.NodeSystemInfo, error) {
			return v1.NodeSystemInfo{
				MachineID: a.spec.Name, SystemUUID: a.spec.Name, BootID: a.spec.Name, KernelVersion: "none", OSImage: "fakenode",
				ContainerRuntimeVersion: "memory://1", KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: "amd64",
			}, nil
		},
		Pressure: func() node.Pressure { return node.Pressure{} },
		Health: func() node.Health {
			a.mu.Lock()
			defer a.mu.Unlock()
			return node.Health{Runtime: a.health}
		},
	}
}
