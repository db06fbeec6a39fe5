package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Nodes is the client of Node objects; client-go's CoreV1().Nodes() implements it. It is
// called from one goroutine.
type Nodes interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1.Node, error)
	Create(ctx context.Context, node *v1.Node, opts metav1.CreateOptions) (*v1.Node, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*v1.Node, error)
}

// Leases is the client of Lease objects in the namespace kube-node-lease; client-go's
// CoordinationV1().Leases("kube-node-lease") implements it. It is called from one
// goroutine, which is not the one that calls Nodes.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Config configures a [Node].
type Config struct {
	// Spec is the desired Node object. Its Name is required.
	Spec Spec

	// Nodes is the client of Node objects. Required.
	Nodes Nodes

	// Leases is the client of node leases. If nil, there is no lease: the control plane
	// then relies on the node status, and ReportPeriod should be less than 5 minutes.
	Leases Leases

	// Setters set the node status, in this order; [Report] returns the kubelet's.
	// Nil: the status remains empty.
	Setters []Setter

	// NoRegistration disables the creation of the Node object (registerNode: false).
	// Nothing is reported until another client has created it.
	NoRegistration bool

	// Timing has the periods of status and lease.
	Timing Timing

	// Refresh updates the state that Setters read, such as the health of the runtime. It
	// is called every 100 ms until the node is ready for the first time. Nil: Setters read
	// current state.
	Refresh func(ctx context.Context)

	// Observed is called with each Node object that the API server returns, before it is
	// used for the first time, and with nil when it was deleted. It must not block, and must
	// not modify the object. Calls are not concurrent. May be nil.
	Observed func(*v1.Node)

	// Connection has functions for the connection to the API server.
	Connection Connection

	// Record is called with events about the node. It must not block. May be nil.
	Record func(runtime.Event)

	// Hooks are called after each operation.
	Hooks Hooks

	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
}

// Connection has functions that are called when the API server is not reachable, and when
// it is again.
type Connection struct {
	// Unreachable is called when two consecutive calls of the API server have failed. It
	// should close all connections, since they may hang. It is called from two
	// goroutines. May be nil.
	Unreachable func()

	// Recovered is called when the lease is renewed after a failure: the API server is
	// reachable again, and other retries need not wait. It must not block. May be nil.
	Recovered func()
}

// Timing has the periods of a [Node].
type Timing struct {
	// UpdatePeriod is the period at which the status is computed
	// (nodeStatusUpdateFrequency). It is sent if it has changed. Zero: 10s.
	UpdatePeriod time.Duration

	// ReportPeriod is the period at which a status that has not changed is sent
	// (nodeStatusReportFrequency). Zero: 5m.
	ReportPeriod time.Duration

	// LeaseDuration is the duration of the lease (nodeLeaseDurationSeconds), which is
	// renewed four times in that time. Whole seconds. Zero: 40s.
	LeaseDuration time.Duration

	// CallTimeout bounds each call of the API server. Zero: 10s.
	CallTimeout time.Duration
}

// Hooks are called by a [Node]. Each may be nil. They must not block.
type Hooks struct {
	// Registered is called once, when the Node object exists: the time since the start of
	// Run, and whether this Node has created it.
	Registered func(took time.Duration, created bool)

	// Updated is called after each computation of the status: whether it was sent, and
	// the error if it could not be computed or sent.
	Updated func(sent bool, err error)

	// Renewed is called after each attempt to renew the lease.
	Renewed func(err error)

	// Ready is called when the status was first sent with the condition Ready: the time
	// since the start of Run.
	Ready func(took time.Duration)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add2(&h.Registered, o.Registered)
		compose.Add2(&h.Updated, o.Updated)
		compose.Add(&h.Renewed, o.Renewed)
		compose.Add(&h.Ready, o.Ready)
	}
	return h
}

// A Spec is the desired Node object at registration. Reconcile updates part of it if the
// object exists.
type Spec struct {
	// Name is the name of the object.
	Name string

	// Hostname is the value of the label kubernetes.io/hostname. Empty: Name.
	Hostname string

	// Labels are labels in addition to kubernetes.io/{hostname,os,arch}; see
	// [ParseLabels].
	Labels map[string]string

	// NoLabelUpdate sets Labels only when the object is created, as the kubelet does.
	// Otherwise, Labels are also updated at each start; other labels of the object remain.
	NoLabelUpdate bool

	// Taints are set when the object is created; see [ParseTaints]. They are not restored
	// later, since other components remove them.
	Taints []v1.Taint

	// Unschedulable creates the object as unschedulable.
	Unschedulable bool

	// CloudProvider configures the node for a cloud provider.
	CloudProvider CloudProvider

	// SelfAttach reports that this node attaches volumes, not the attach-detach
	// controller.
	SelfAttach bool

	// KeepExtendedResources preserves the capacity of extended resources of an existing
	// object until their device plugins have registered. It requires that the allocations
	// of devices were checkpointed on this machine; otherwise the capacity is set to zero.
	KeepExtendedResources bool

	// OS and Arch are values of labels. Empty: those of this program.
	OS, Arch string
}

// A CloudProvider configures a node for a cloud provider.
type CloudProvider struct {
	// External creates the object with the taint that an external cloud provider removes
	// after it has initialized the node. The cloud provider also sets the addresses.
	External bool

	// ProvidedNodeIP is the configured address of the node, for the external cloud
	// provider. It has no effect without External.
	ProvidedNodeIP string

	// ProviderID is the identifier of the machine: spec.providerID.
	ProviderID string
}

// New returns a Node, or an error that names the field of cfg that is invalid. It starts
// nothing.
func New(cfg Config) (*Node, error) {
	switch {
	case cfg.Spec.Name == "":
		return nil, errors.New("node: Config.Spec.Name is empty")
	case cfg.Nodes == nil:
		return nil, errors.New("node: Config.Nodes is nil")
	case cfg.Timing.LeaseDuration%time.Second != 0 || cfg.Timing.LeaseDuration < 0:
		return nil, errors.New("node: Config.Timing.LeaseDuration is not in whole seconds")
	case cfg.Timing.UpdatePeriod < 0 || cfg.Timing.ReportPeriod < 0 || cfg.Timing.CallTimeout < 0:
		return nil, errors.New("node: a period of Config.Timing is negative")
	case slices.ContainsFunc(cfg.Setters, func(s Setter) bool { return s.Set == nil }):
		return nil, errors.New("node: an element of Config.Setters has no Set")
	}
	for d, byDefault := range map[*time.Duration]time.Duration{
		&cfg.Timing.UpdatePeriod: 10 * time.Second, &cfg.Timing.ReportPeriod: 5 * time.Minute,
		&cfg.Timing.LeaseDuration: 40 * time.Second, &cfg.Timing.CallTimeout: 10 * time.Second,
	} {
		if *d == 0 {
			*d = byDefault
		}
	}
	s := &cfg.Spec
	if s.Hostname == "" {
		s.Hostname = s.Name
	}
	if s.OS == "" {
		s.OS = goruntime.GOOS
	}
	if s.Arch == "" {
		s.Arch = goruntime.GOARCH
	}
	s.Labels, s.Taints, cfg.Setters = maps.Clone(s.Labels), slices.Clone(s.Taints), slices.Clone(cfg.Setters)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Node{cfg: cfg, due: make(chan struct{}, 1), registered: make(chan struct{})}, nil
}
