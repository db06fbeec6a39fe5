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

	"github.com/kubeparts/kubeparts/runtime"
)

// Nodes are the node objects of an API server. client-go's
// CoreV1().Nodes() is one. It is called from one goroutine.
type Nodes interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1.Node, error)
	Create(ctx context.Context, node *v1.Node, opts metav1.CreateOptions) (*v1.Node, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*v1.Node, error)
}

// Leases are the leases of namespace kube-node-lease. client-go's
// CoordinationV1().Leases("kube-node-lease") is one. It is called from one
// goroutine, another than that of Nodes.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Config configures a [Node].
type Config struct {
	// Spec is what the node is when it is made. Its Name is required.
	Spec Spec

	// Nodes is where the node's object is. Required.
	Nodes Nodes

	// Leases is where the node's lease is. Nil: there is none, and the node
	// counts as lost when its status gets too old, which then should be
	// reported more often than every 5 minutes.
	Leases Leases

	// Setters fill the status in, in this order; [Facts.Setters] returns those
	// that the kubelet has. Nil: the status stays empty.
	Setters []Setter

	// Existing leaves the making of the object to others (ns-4): until it is
	// there, nothing is reported.
	Existing bool

	// Period between two looks at the status (ns-5). Zero: 10 s. A node whose
	// facts change less often costs nothing but a read per period.
	Period time.Duration

	// ReportPeriod is after how long a status is reported although nothing has
	// changed. Zero: 5 min.
	ReportPeriod time.Duration

	// LeaseDuration is how long others may rely on the last word of the node;
	// it renews the lease four times as often (ls-1, ls-2). Zero: 40 s. Whole
	// seconds.
	LeaseDuration time.Duration

	// CallTimeout is how long one call of the API server may take. Zero: 10 s.
	CallTimeout time.Duration

	// Refresh looks at what the facts rest on, such as whether the runtime is
	// up, ten times a second until the node is ready first (ns-7). Nil: the
	// facts look for themselves.
	Refresh func(ctx context.Context)

	// Seen is told of the node's object whenever it was read or written, the
	// first time before anything else is done with it. It must not block, and
	// not change the object. Nil: nobody wants to know.
	Seen func(*v1.Node)

	// Unreachable is told when the API server has failed to answer twice in a
	// row (ns-6, ls-3): who holds connections should close them, since they may
	// hang. It is called from two goroutines. Nil: nobody does.
	Unreachable func()

	// Record is told of what happens to the node. It must not block. Nil: no
	// events.
	Record func(runtime.Event)

	// Hooks are told what was done.
	Hooks Hooks

	// Logger; nil discards.
	Logger *slog.Logger
}

// Hooks are told what a [Node] did. Each may be nil; none may block.
type Hooks struct {
	// Registered is called once the object is known to be there (ns-21):
	// how long that took, and whether it was made.
	Registered func(took time.Duration, made bool)

	// Updated is called after each pass over the status: whether the status was
	// sent, and the error if it was not to be done.
	Updated func(sent bool, err error)

	// Renewed is called after each try to renew the lease.
	Renewed func(err error)

	// Ready is called when the status was first sent with Ready: how long after
	// the start of Run (ns-7, ns-21).
	Ready func(took time.Duration)
}

// A Spec is what a node is from the start: what is set when its object is made,
// and, of that, what is put in order again when the agent comes back (ns-3).
type Spec struct {
	// Name of the object.
	Name string

	// Hostname is the value of the label kubernetes.io/hostname. Empty: Name.
	Hostname string

	// Labels beyond kubernetes.io/{hostname,os,arch}; see [ParseLabels].
	Labels map[string]string

	// LabelsOnce sets Labels when the object is made only, as the kubelet does:
	// what the agent is told later about its labels has no effect then (nq-20).
	// Otherwise, Labels are put right each time that the agent starts; others
	// that the object has are left alone.
	LabelsOnce bool

	// Taints that the object is made with; see [ParseTaints]. They are not put
	// back later: many are there for somebody to take away when he is done.
	Taints []v1.Taint

	// Unschedulable makes the object as one that takes no pods.
	Unschedulable bool

	// ExternalCloudProvider makes it with the taint that such a provider takes
	// away when it has filled in what it knows.
	ExternalCloudProvider bool

	// ProvidedNodeIP is what the agent was told its address is, for an external
	// cloud provider to look at.
	ProvidedNodeIP string

	// SelfAttach says that volumes are attached by this node, not by the
	// attach-detach controller.
	SelfAttach bool

	// ProviderID as the cloud provider knows the machine: spec.providerID.
	ProviderID string

	// KeepDevices: there is a record of devices that were given out, so that
	// the capacity of extended resources stays as it is until their plugins are
	// back (ns-3).
	KeepDevices bool

	// OS and Arch of the labels. Empty: those of this program.
	OS, Arch string
}

// New returns a Node for cfg, or an error that says what of cfg can't be.
func New(cfg Config) (*Node, error) {
	switch {
	case cfg.Spec.Name == "":
		return nil, errors.New("node: Config.Spec.Name is empty")
	case cfg.Nodes == nil:
		return nil, errors.New("node: Config.Nodes is nil")
	case cfg.LeaseDuration%time.Second != 0 || cfg.LeaseDuration < 0:
		return nil, errors.New("node: Config.LeaseDuration is not in whole seconds")
	case cfg.Period < 0 || cfg.ReportPeriod < 0 || cfg.CallTimeout < 0:
		return nil, errors.New("node: a period of Config is negative")
	case slices.ContainsFunc(cfg.Setters, func(s Setter) bool { return s.Set == nil }):
		return nil, errors.New("node: one of Config.Setters has no Set")
	}
	for d, otherwise := range map[*time.Duration]time.Duration{
		&cfg.Period: 10 * time.Second, &cfg.ReportPeriod: 5 * time.Minute,
		&cfg.LeaseDuration: 40 * time.Second, &cfg.CallTimeout: 10 * time.Second,
	} {
		if *d == 0 {
			*d = otherwise
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
	return &Node{cfg: cfg, due: make(chan struct{}, 1), known: make(chan struct{})}, nil
}
