package fakenode

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

// A Config says what nodes there are and how pods live on them. The zero value is
// one node, "fake-0", which takes every pod, and whose containers run until they
// are stopped.
type Config struct {
	// Nodes that there are. Nil: one, of the zero Node. Each has a name of its own;
	// see [Many].
	Nodes []Node

	// Behave says what a container of a pod does, and reports false if it does not
	// care. It is asked once for each container of a pod, from many goroutines, and
	// changes nothing of the pod. Nil: nobody asks. The pod's annotations count
	// before it (see [Annotation]), Behaviours after it.
	Behave func(pod *v1.Pod, c *v1.Container) (Behaviour, bool)

	// Behaviours of containers, by their name, or else by their image.
	Behaviours map[string]Behaviour

	// NoScheduler leaves pods without a node alone: something else binds them. A
	// cluster with a kube-scheduler wants that; envtest has none.
	NoScheduler bool

	// Backoff is the delay before the second restart of a container that ends again
	// and again; it doubles with each one, up to 30 times itself. Zero: 10 s, as a
	// kubelet's; negative: there is none, and no CrashLoopBackOff to be seen.
	Backoff time.Duration

	// Retry is how long a container that cannot be started waits for the next try,
	// up to half as much more. Zero: 1 s.
	Retry time.Duration

	// NoEvents keeps the events of pods and nodes from being written.
	NoEvents bool

	// OwnWatches gives each node a watch of its own pods, as real nodes have, in
	// place of one watch of all pods, which costs an API server less.
	OwnWatches bool

	// Period is between two looks of a node at its own status, and LeaseDuration how
	// long its lease holds, which is renewed four times as often. Zero: 10 s and
	// 40 s, as a kubelet's.
	Period        time.Duration
	LeaseDuration time.Duration

	// QPS and Burst limit the calls of all nodes together, but for their heartbeats.
	// Zero: 50 and 300 for each of the nodes. Negative QPS: no limit.
	QPS   float32
	Burst int

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger
}

// A Node is one of the nodes.
type Node struct {
	// Name of its object. Empty: fake-0.
	Name string

	// Labels beside kubernetes.io/{hostname,os,arch}, and Taints.
	Labels map[string]string
	Taints []v1.Taint

	// Capacity of the node, all of which is for pods. What is not in it of cpu,
	// memory, ephemeral-storage and pods is 8, 32Gi, 100Gi and 110.
	Capacity v1.ResourceList
}

// Many returns n nodes that are like one, called NAME-0, NAME-1 and so on. An empty
// name is "fake".
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

// complete checks cfg and fills its defaults in.
func (cfg *Config) complete(api *rest.Config) error {
	if api == nil {
		return errors.New("fakenode: the REST configuration is nil: give it what envtest's Environment.Start returned, or the kubeconfig's")
	}
	if cfg.Period < 0 || cfg.LeaseDuration < 0 || cfg.Retry < 0 {
		return errors.New("fakenode: Config.Period, LeaseDuration or Retry is negative")
	}
	if cfg.Nodes == nil {
		cfg.Nodes = Many(1, Node{})
	}
	nodes, seen := make([]Node, len(cfg.Nodes)), map[string]bool{}
	for i, n := range cfg.Nodes {
		if n.Name == "" {
			n.Name = "fake-0"
		}
		if seen[n.Name] {
			return fmt.Errorf("fakenode: two of Config.Nodes are called %q: see Many", n.Name)
		}
		seen[n.Name] = true
		capacity := v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
			v1.ResourceEphemeralStorage: resource.MustParse("100Gi"), v1.ResourcePods: resource.MustParse("110"),
		}
		for name, q := range n.Capacity {
			capacity[name] = q
		}
		n.Capacity = capacity
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
	if cfg.QPS == 0 {
		cfg.QPS = 50 * float32(len(nodes))
	}
	if cfg.Burst == 0 {
		cfg.Burst = 300 * len(nodes)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
