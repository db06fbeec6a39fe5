package fakenode

import (
	"cmp"
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

// addressAnnotation has the InternalIP of an adopted node that has no address of its creator.
// It is replaced when another process runs the node.
const addressAnnotation = "fakenode.kubeparts.io/address"

// setAdopted sets the status of an adopted node: conditions, and what the object lacks.
func (a *agent) setAdopted(ctx context.Context, d *node.Draft) error {
	facts, err := a.facts(ctx)
	if err != nil {
		return err
	}
	is := d.Node.Status
	capacity, allocatable := completeResources(&is)
	info := *facts.Info
	facts.Addresses, facts.Machine, facts.Info = nil, nil, nil
	if err := node.Report(func(context.Context) (node.Facts, error) { return facts, nil }).Set(ctx, d); err != nil {
		return err
	}
	s := &d.Node.Status
	s.Capacity, s.Allocatable = capacity, allocatable
	s.Images, s.DeclaredFeatures, s.VolumesInUse = is.Images, is.DeclaredFeatures, is.VolumesInUse
	completeInfo(&s.NodeInfo, &info)
	if facts.KubeletPort == 0 {
		s.DaemonEndpoints = is.DaemonEndpoints
	}
	if address := a.adoptedAddress(d.Node); address != "" {
		s.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: address}} // the name of the node cannot be resolved
		if d.Node.Annotations == nil {
			d.Node.Annotations = map[string]string{}
		}
		d.Node.Annotations[addressAnnotation] = address
	}
	return nil
}

// adoptedAddress returns the address that this package sets in an adopted node; "" if the
// addresses of its creator remain.
func (a *agent) adoptedAddress(o *v1.Node) string {
	is := o.Status.Addresses
	switch {
	case len(is) == 0:
		return a.address()
	case len(is) > 1 || is[0].Address != o.Annotations[addressAnnotation]:
		return ""
	}
	return cmp.Or(a.of.endpoint(o.Name).Address, is[0].Address)
}

// object returns the Node object; nil if it was not read yet. That of an adopted node is known
// from the beginning.
func (a *agent) object() *v1.Node {
	if a.adopted {
		return a.of.nodes.Node(a.spec.Name)
	}
	return a.node.Object()
}

// hostIP returns the address of the node in the statuses of its pods.
func (a *agent) hostIP() string {
	if o := a.object(); a.adopted && o != nil {
		for _, address := range o.Status.Addresses {
			if address.Type == v1.NodeInternalIP {
				return address.Address
			}
		}
	}
	return a.address()
}

// completeResources returns the capacity and the allocatable resources of an adopted node.
func completeResources(s *v1.NodeStatus) (capacity, allocatable v1.ResourceList) {
	capacity = maps.Clone(s.Allocatable)
	if capacity == nil {
		capacity = v1.ResourceList{}
	}
	maps.Copy(capacity, s.Capacity)
	capacity = completeCapacity(capacity)
	allocatable = maps.Clone(capacity)
	maps.Copy(allocatable, s.Allocatable)
	return capacity, allocatable
}

// completeInfo sets the fields of is that are empty.
func completeInfo(is, defaults *v1.NodeSystemInfo) {
	for field, value := range map[*string]string{
		&is.MachineID: defaults.MachineID, &is.SystemUUID: defaults.SystemUUID, &is.BootID: defaults.BootID, &is.KernelVersion: defaults.KernelVersion,
		&is.OSImage: defaults.OSImage, &is.ContainerRuntimeVersion: defaults.ContainerRuntimeVersion, &is.KubeletVersion: defaults.KubeletVersion,
		&is.OperatingSystem: defaults.OperatingSystem, &is.Architecture: defaults.Architecture,
	} {
		*field = cmp.Or(*field, value)
	}
}

// Reassess calls Config.Adopt again for all Node objects: its results have changed. It returns
// when the nodes that are no longer selected have stopped, with no request in progress, or
// when ctx or the context of Run is done. Newly selected nodes have been started by then.
func (n *Nodes) Reassess(ctx context.Context) {
	if n.adopter == nil {
		return
	}
	done := make(chan struct{})
	select {
	case n.adopter.reassess <- done:
	case <-n.adopter.stopped:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-n.adopter.stopped:
	case <-ctx.Done():
	}
}
