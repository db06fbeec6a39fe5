package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Facts are what the kubelet's setters ask. Each may be nil: that part of the
// status is left as it is. They are called once per period from one goroutine, and
// should answer from what they know: a slow one delays all of the status.
type Facts struct {
	// Addresses of the node; see [AddressConfig].
	Addresses func(ctx context.Context) ([]v1.NodeAddress, error)

	// Machine is what there is to be given out.
	Machine Machine

	// Info is what the machine is; see [ReadInfo].
	Info func(ctx context.Context) (v1.NodeSystemInfo, error)

	// KubeletPort is where the agent serves the kubelet's API; 0: it does not.
	KubeletPort int32

	// Declared are features by which others decide how to ask this node for something,
	// such as ExtendWebSocketsToKubelet: the API server then passes on what kubectl
	// speaks, and does not translate it. In the order of their names.
	Declared []string

	// Images that the node has; the biggest MaxImages of them are reported.
	// Zero: 50; -1: all.
	Images    func(ctx context.Context) ([]Image, error)
	MaxImages int

	// Handlers of the runtime, and what it can do.
	Handlers func(ctx context.Context) ([]v1.NodeRuntimeHandler, error)
	Features func(ctx context.Context) (*v1.NodeFeatures, error)

	// Pressure on the node's memory, disk and process IDs.
	Pressure func() Pressure

	// Health is what keeps the node from being ready. Without it, the node is
	// ready if its capacity is known.
	Health func() Health

	// VolumesInUse are the volumes that are mounted, or about to be.
	VolumesInUse func() []v1.UniqueVolumeName
}

// Setters returns the setters of the facts there are, in the kubelet's order
// (ns-8). A node of another kind adds its own, or takes some away.
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
	addresses, err := f.Addresses(ctx)
	if err != nil {
		return err
	}
	d.Node.Status.Addresses = addresses
	return nil
}

func (f Facts) setInfo(ctx context.Context, d *Draft) error {
	info, err := f.Info(ctx)
	// What is known is better than nothing.
	was := d.Node.Status.NodeInfo.BootID
	d.Node.Status.NodeInfo = info
	if was != "" && info.BootID != "" && was != info.BootID { // ns-13
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
		d.Node.Status.Images = nil // ns-15
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
	// What was attached by others is theirs to tell: volumesAttached stays.
	d.Node.Status.VolumesInUse = f.VolumesInUse()
	return nil
}

// setSchedulable tells of a change of spec.unschedulable (ns-19).
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
