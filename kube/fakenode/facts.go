package fakenode

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
)

// kubeletVersion is the kubelet version in the node status.
const kubeletVersion = runtime.KubernetesVersion + "+kubeparts-fake"

// setters return the parts of the node status.
func (a *agent) setters() []node.Setter {
	if a.adopted {
		return []node.Setter{{Name: "adopted", Set: a.setAdopted}}
	}
	return []node.Setter{node.Report(a.facts)}
}

// facts returns the facts of the node status.
func (a *agent) facts(context.Context) (node.Facts, error) {
	a.mu.Lock()
	health := node.Health{Runtime: a.health}
	a.mu.Unlock()
	return node.Facts{
		Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: a.address()}, {Type: v1.NodeHostName, Address: a.spec.Name}},
		Machine:   &node.Machine{Capacity: a.spec.Capacity},
		Info: &v1.NodeSystemInfo{
			MachineID: a.spec.Name, SystemUUID: a.spec.Name, BootID: a.spec.Name, KernelVersion: "none", OSImage: "fakenode",
			ContainerRuntimeVersion: "memory://1", KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: "amd64",
		},
		KubeletPort: a.of.endpoint(a.spec.Name).Port, Pressure: new(node.Pressure), Health: health,
	}, nil
}
