package options

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// A NodeReporter describes the node of a Runtime whose pods run elsewhere than on this machine.
type NodeReporter interface {
	// NodeInfo queries the backend. It is called by kubelet.Open, which returns its error, and
	// then once a minute; after an error the last result applies.
	NodeInfo(ctx context.Context) (NodeInfo, error)
}

// NodeInfo describes a node.
type NodeInfo struct {
	// Capacity are the resources of the node: cpu, memory, ephemeral-storage, pods and extended
	// resources. Without pods, maxPods of the Configuration applies. Required: cpu and memory.
	Capacity v1.ResourceList

	// Allocatable is the part of Capacity that is available to pods. Nil: all of it. The
	// reservations of the Configuration are not subtracted.
	Allocatable v1.ResourceList

	// Addresses are the addresses at which the API server reaches the API of the kubelet. Nil:
	// those of this machine.
	Addresses []v1.NodeAddress

	// Version is the version of the backend, for the node status. Empty: it is unknown.
	Version string

	// OS and Arch are the operating system and architecture of pods, for the node status, labels
	// and admission. If empty, they are this program's.
	OS, Arch string
}
