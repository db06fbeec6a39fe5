package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Facts are the functions that the kubelet's setters call. Each may be nil: the setter is
// then omitted. They are called once per period from one goroutine, and should return
// cached values, since a slow one delays the status.
type Facts struct {
	// Addresses of the node; see [AddressConfig].
	Addresses func(ctx context.Context) ([]v1.NodeAddress, error)

	// CloudProvider is that of Spec. If it is External, addresses that the node already
	// has are left unchanged: the cloud provider sets them.
	CloudProvider CloudProvider

	// Machine has the resources of the node.
	Machine Machine

	// Info returns information about the machine; see [ReadInfo].
	Info func(ctx context.Context) (v1.NodeSystemInfo, error)

	// KubeletPort is the port of the kubelet's API. Zero: it is not served.
	KubeletPort int32

	// Declared are the declared features (KEP-5328), such as ExtendWebSocketsToKubelet,
	// sorted by name. Clients of the node depend on them: with that feature the API server
	// forwards WebSocket streams unchanged.
	Declared []string

	// Images returns the images of the node; the largest MaxImages are reported. Zero: 50.
	// A negative value means all.
	Images    func(ctx context.Context) ([]Image, error)
	MaxImages int

	// Handlers returns the runtime handlers, and Features the features of the runtime.
	Handlers func(ctx context.Context) ([]v1.NodeRuntimeHandler, error)
	Features func(ctx context.Context) (*v1.NodeFeatures, error)

	// Pressure returns the pressure on memory, disk and process IDs.
	Pressure func() Pressure

	// Health returns the health of the node. If nil, the node is ready when its capacity is
	// known.
	Health func() Health

	// VolumesInUse returns the volumes that are mounted or are about to be mounted.
	VolumesInUse func() []v1.UniqueVolumeName
}

// Setters returns a setter for each fact, in the kubelet's order (rule ns-8). Other kinds
// of nodes may add and remove setters.
func (f Facts) Setters() []Setter {
	var s []Setter
	add := func(is bool, name string, set func(ctx context.Context, d *Draft) error) {
		if is {
			s = append(s, Setter{Name: name, Set: set})
		}
	}
	add(f.Addresses != nil, "addresses", f.setAddresses)
	add(f.Machine.Capacity != nil, "machine", f.Machine.set)
	add(f.Info != nil, "system info", f.setInfo)
	add(true, "endpoints", f.setEndpoints)
	add(f.Images != nil, "images", f.setImages)
	add(f.Handlers != nil, "runtime handlers", f.setHandlers)
	add(f.Features != nil, "features", f.setFeatures)
	add(f.Pressure != nil, "pressure", f.setPressure)
	add(true, "readiness", f.setReady)
	add(f.VolumesInUse != nil, "volumes in use", f.setVolumesInUse)
	add(true, "schedulability", setSchedulable)
	return s
}

func (f Facts) setAddresses(ctx context.Context, d *Draft) error {
	f.CloudProvider.annotate(d.Node)
	if f.CloudProvider.External && len(d.Node.Status.Addresses) > 0 {
		return nil
	}
	addresses, err := f.Addresses(ctx)
	if err != nil {
		return err
	}
	d.Node.Status.Addresses = addresses
	return nil
}

func (f Facts) setInfo(ctx context.Context, d *Draft) error {
	info, err := f.Info(ctx)
	// Partial information is reported, too.
	was := d.Node.Status.NodeInfo.BootID
	d.Node.Status.NodeInfo = info
	if was != "" && info.BootID != "" && was != info.BootID { // rule ns-13
		d.Event(v1.EventTypeWarning, "Rebooted", "Node %s has been rebooted, boot id: %s", d.Node.Name, info.BootID)
	}
	return err
}

func (f Facts) setEndpoints(_ context.Context, d *Draft) error {
	d.Node.Status.DaemonEndpoints.KubeletEndpoint.Port = f.KubeletPort
	d.Node.Status.DeclaredFeatures = f.Declared
	return nil
}

func (f Facts) setImages(ctx context.Context, d *Draft) error {
	images, err := f.Images(ctx)
	if err != nil {
		d.Node.Status.Images = nil // rule ns-15
		return err
	}
	d.Node.Status.Images = reportImages(images, f.MaxImages)
	return nil
}

func (f Facts) setHandlers(ctx context.Context, d *Draft) error {
	handlers, err := f.Handlers(ctx)
	if err != nil {
		return err
	}
	d.Node.Status.RuntimeHandlers = handlers
	return nil
}

func (f Facts) setFeatures(ctx context.Context, d *Draft) error {
	features, err := f.Features(ctx)
	if err != nil {
		return err
	}
	d.Node.Status.Features = features
	return nil
}

func (f Facts) setVolumesInUse(_ context.Context, d *Draft) error {
	// volumesAttached belongs to the attach controller.
	d.Node.Status.VolumesInUse = f.VolumesInUse()
	return nil
}

// setSchedulable records changes of spec.unschedulable (rule ns-19).
func setSchedulable(_ context.Context, d *Draft) error {
	if d.Before == nil || d.Before.Spec.Unschedulable == d.Node.Spec.Unschedulable {
		return nil
	}
	reason := "NodeSchedulable"
	if d.Node.Spec.Unschedulable {
		reason = "NodeNotSchedulable"
	}
	d.Event(v1.EventTypeNormal, reason, "Node %s status is now: %s", d.Node.Name, reason)
	return nil
}
