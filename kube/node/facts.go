package node

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Facts are the facts that a node status reports. The zero value is a node that reports
// nothing but its readiness.
type Facts struct {
	// Addresses of the node; see [AddressConfig]. Empty: they are not changed.
	Addresses []v1.NodeAddress

	// CloudProvider is the one in Spec. If it is External, addresses that the node already
	// has are left unchanged: the cloud provider sets them.
	CloudProvider CloudProvider

	// Machine has the resources of the node. Nil: they are not changed.
	Machine *Machine

	// Info is information about the machine; see [ReadInfo]. Nil: it is not changed.
	Info *v1.NodeSystemInfo

	// KubeletPort is the port of the kubelet's API. Zero: it is not served.
	KubeletPort int32

	// Declared are the declared features (KEP-5328), such as ExtendWebSocketsToKubelet,
	// sorted by name. Clients of the node depend on them: with that feature the API server
	// forwards WebSocket streams unchanged.
	Declared []string

	// Images are the images of the node; the largest MaxImages are reported. Zero: 50. A
	// negative value means all.
	Images    []Image
	MaxImages int

	// Runtime has the handlers and features of the container runtime. Nil: they are not
	// changed.
	Runtime *runtime.Features

	// Pressure is the pressure on memory, disk and process IDs. Nil: it is not reported.
	Pressure *Pressure

	// Health is the health of the node. The zero value is ready if the capacity is known.
	Health Health

	// NoEphemeralStorage makes a node ready whose capacity has no ephemeral-storage
	// (localStorageCapacityIsolation: false).
	NoEphemeralStorage bool

	// VolumesInUse are the volumes that are mounted or are about to be mounted.
	VolumesInUse []v1.UniqueVolumeName
}

// Report returns the setter of a kubelet, which sets the facts that read returns. It is called
// once per period from one goroutine, and should return cached values, since a slow call
// delays the status. With an error it returns the facts that could be read. Other kinds of nodes
// may have setters before and after it.
func Report(read func(ctx context.Context) (Facts, error)) Setter {
	return Setter{Name: "facts", Set: func(ctx context.Context, d *Draft) error {
		f, err := read(ctx)
		f.set(d)
		return err
	}}
}

// set sets the parts of the status in the kubelet's order (rule ns-8).
func (f *Facts) set(d *Draft) {
	s := &d.Node.Status
	f.CloudProvider.annotate(d.Node)
	if len(f.Addresses) > 0 && !(f.CloudProvider.External && len(s.Addresses) > 0) {
		s.Addresses = f.Addresses
	}
	if f.Machine != nil {
		f.Machine.set(s)
	}
	if f.Info != nil {
		f.setInfo(d)
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = f.KubeletPort
	s.DeclaredFeatures = f.Declared
	s.Images = reportImages(f.Images, f.MaxImages)
	if f.Runtime != nil {
		setRuntime(s, *f.Runtime)
	}
	if f.Pressure != nil {
		d.setPressure(*f.Pressure)
	}
	d.setReady(f.Health, f.NoEphemeralStorage)
	s.VolumesInUse = f.VolumesInUse // volumesAttached belongs to the attach controller
	d.reportSchedulable()
}

func (f *Facts) setInfo(d *Draft) {
	was := d.Node.Status.NodeInfo.BootID
	d.Node.Status.NodeInfo = *f.Info
	if was != "" && f.Info.BootID != "" && was != f.Info.BootID { // rule ns-13
		d.Event(v1.EventTypeWarning, "Rebooted", "Node %s has been rebooted, boot id: %s", d.Node.Name, f.Info.BootID)
	}
}

// setRuntime sets the runtime handlers and features (rule ns-17).
func setRuntime(s *v1.NodeStatus, f runtime.Features) {
	s.RuntimeHandlers, s.Features = nil, nil
	for _, name := range slices.Sorted(maps.Keys(f.Handlers)) {
		h := f.Handlers[name]
		s.RuntimeHandlers = append(s.RuntimeHandlers, v1.NodeRuntimeHandler{Name: name, Features: &v1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts, UserNamespaces: &h.UserNamespaces,
		}})
	}
	if !f.Unreported {
		s.Features = &v1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
	}
}

// reportSchedulable reports changes of spec.unschedulable (rule ns-19).
func (d *Draft) reportSchedulable() {
	if d.Before == nil || d.Before.Spec.Unschedulable == d.Node.Spec.Unschedulable {
		return
	}
	reason := "NodeSchedulable"
	if d.Node.Spec.Unschedulable {
		reason = "NodeNotSchedulable"
	}
	d.Event(v1.EventTypeNormal, reason, "Node %s status is now: %s", d.Node.Name, reason)
}
