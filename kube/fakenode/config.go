package fakenode

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Config configures fake nodes and their pods. The zero value is one node, "fake-0", that
// runs every pod bound to it, with containers that run until they are stopped.
type Config struct {
	// Nodes are the nodes, with unique names; see [Many]. Nil: one zero Node, and none with
	// Adopt.
	Nodes []Node

	// Behave returns the behavior of a container; it reports false if it specifies none.
	// It is called once for each container of a pod, must be safe for concurrent use, and
	// must not modify the pod. Annotations of the pod take precedence over it (see
	// [Annotation]), and it takes precedence over Behaviors. May be nil.
	Behave func(pod *v1.Pod, c *v1.Container) (fake.Behavior, bool)

	// Behaviors are behaviors of containers by container name or, if there is none, by
	// image.
	Behaviors map[string]fake.Behavior
	shared    map[string]*fake.Behavior // the same, shared by all pods

	// Adopt reports whether a Node object that another client has created is run like one of
	// Nodes. It is called with each observed object, from one goroutine, and must not modify
	// it; see [Nodes.Reassess]. Capacity, addresses, labels, taints and everything else that the
	// object has are kept; its lease and its conditions are added, and what it lacks of the
	// defaults of [Node]. A node is stopped when its object is deleted. Requires NoScheduler. If
	// nil, no object is adopted.
	Adopt func(node *v1.Node) bool

	// Endpoint returns where the kubelet API of a node is served, for its status. The package
	// does not serve it. It must be safe for concurrent use. If nil, the status has an address
	// at which nothing listens, and no port.
	Endpoint func(node string) Endpoint

	// NoScheduler disables the binding of pods to nodes. It should be set in a cluster with
	// a kube-scheduler; envtest has none.
	NoScheduler bool

	// Backoff is the delay before the second restart of a container that crashes. It
	// doubles with each restart, up to 30 times Backoff. Zero: 10s, as with the kubelet. A
	// negative value disables it, and with it CrashLoopBackOff.
	Backoff time.Duration

	// Retry is the delay before a container that could not be started is started again,
	// plus up to 50 % jitter. Zero: 1s.
	Retry time.Duration

	// API is how the nodes use the API server.
	API API

	// Heartbeat has the periods of node status and lease.
	Heartbeat Heartbeat

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger
}

// An API is how nodes use the API server. The zero value has one watch of pods for all nodes.
type API struct {
	// NoEvents disables events of pods and nodes; the package documentation lists them.
	NoEvents bool

	// OwnWatches makes each node watch its own pods, as kubelets do. Otherwise one watch
	// of all pods is shared, which is less load for an API server.
	OwnWatches bool

	// QPS and Burst limit the requests of all nodes together, except heartbeats. Zero: 50
	// and 300 for each of Nodes, and no limit with Adopt. A negative QPS means no limit.
	QPS   float32
	Burst int
}

// An Endpoint is the place of the kubelet API of a node.
type Endpoint struct {
	Address string // an IP address
	Port    int32
}

// A Heartbeat has the periods of node status and lease.
type Heartbeat struct {
	// StatusPeriod is the period at which a node computes its status, and sends it if it
	// has changed. Zero: 10s, as with the kubelet.
	StatusPeriod time.Duration

	// LeaseDuration is the duration of the lease, which is renewed four times in that
	// time. Zero: 40s, as with the kubelet.
	LeaseDuration time.Duration
}

// A Node is the specification of one node.
type Node struct {
	// Name is the name of the object. Empty: fake-0.
	Name string

	// Labels are labels in addition to kubernetes.io/{hostname,os,arch}.
	Labels map[string]string
	Taints []v1.Taint

	// Capacity is the capacity of the node, all of which is allocatable. Defaults: cpu 8,
	// memory 32Gi, ephemeral-storage 100Gi, pods 110.
	Capacity v1.ResourceList

	// Drivers are DRA drivers that are simulated on the node. Nil: pods with ResourceClaims
	// are rejected.
	Drivers []Driver
}

// Many returns n nodes that are equal to like, except for their names NAME-0, NAME-1, and so
// on. If like.Name is empty, NAME is "fake".
func Many(n int, like Node) []Node {
	if like.Name == "" {
		like.Name = "fake"
	}
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = like
		nodes[i].Name = fmt.Sprintf("%s-%d", like.Name, i)
	}
	return nodes
}

// complete sets the defaults of cfg, or returns an error that names an invalid field.
func (cfg *Config) complete() error {
	if cfg.Heartbeat.StatusPeriod < 0 || cfg.Heartbeat.LeaseDuration < 0 || cfg.Retry < 0 {
		return errors.New("fakenode: Config.Heartbeat.StatusPeriod, Heartbeat.LeaseDuration or Retry is negative")
	}
	for name, b := range cfg.Behaviors {
		if err := CheckBehavior(b); err != nil {
			return fmt.Errorf("fakenode: Config.Behaviors: %s: %w", name, err)
		}
		if cfg.shared == nil {
			cfg.shared = map[string]*fake.Behavior{}
		}
		cfg.shared[name] = &b
	}
	if cfg.Adopt != nil && !cfg.NoScheduler {
		return errors.New("fakenode: Config.Adopt requires Config.NoScheduler: the scheduler places pods on Config.Nodes only")
	}
	if cfg.Nodes == nil && cfg.Adopt == nil {
		cfg.Nodes = Many(1, Node{})
	}
	nodes, names := make([]Node, len(cfg.Nodes)), map[string]bool{}
	for i, n := range cfg.Nodes {
		if n.Name == "" {
			n.Name = "fake-0"
		}
		if names[n.Name] {
			return fmt.Errorf("fakenode: Config.Nodes: duplicate name %q: see Many", n.Name)
		}
		names[n.Name] = true
		if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
			return fmt.Errorf("fakenode: Config.Nodes: invalid name %q: %s", n.Name, strings.Join(problems, "; "))
		}
		if err := checkDrivers(n.Drivers); err != nil {
			return fmt.Errorf("fakenode: Config.Nodes: node %s: %w", n.Name, err)
		}
		n.Capacity = completeCapacity(n.Capacity)
		nodes[i] = n
	}
	cfg.Nodes = nodes
	switch {
	case cfg.Backoff == 0:
		cfg.Backoff = 10 * time.Second
	case cfg.Backoff < 0:
		cfg.Backoff = 0
	}
	if cfg.Retry == 0 {
		cfg.Retry = time.Second
	}
	if cfg.API.QPS == 0 && cfg.Adopt != nil {
		cfg.API.QPS = -1
	}
	if cfg.API.QPS == 0 {
		cfg.API.QPS = 50 * float32(len(nodes))
	}
	if cfg.API.Burst == 0 {
		cfg.API.Burst = 300 * len(nodes)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// completeCapacity returns a capacity with the defaults of the resources that it lacks.
func completeCapacity(is v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	maps.Copy(out, is)
	return out
}
