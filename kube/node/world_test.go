package node_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
)

// machine is the capacity of the tests' node.
func machine() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
}

// A world is the environment of a node, with facts that a test can change.
type world struct {
	*fakeAPI
	t *testing.T

	mu          sync.Mutex // guards the fields below
	health      node.Health
	pressure    node.Pressure
	events      []string
	registered  int
	readyAfter  time.Duration
	unreachable int
	refreshed   int
	adjust      func(*node.Facts) // may be nil
}

func newWorld(t *testing.T) *world { return &world{fakeAPI: newAPI(), t: t} }

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *world) facts(context.Context) (node.Facts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pressure := w.pressure
	f := node.Facts{
		Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}, {Type: v1.NodeHostName, Address: "n1"}},
		Machine:   &node.Machine{Capacity: machine(), MaxPods: 110}, Pressure: &pressure, Health: w.health,
	}
	if w.adjust != nil {
		w.adjust(&f)
	}
	return f, nil
}

func (w *world) config() node.Config {
	return node.Config{
		Spec: node.Spec{Name: "n1", OS: "linux", Arch: "amd64"}, Nodes: fakeNodes{w.fakeAPI}, Setters: []node.Setter{node.Report(w.facts)},
		Record: func(e runtime.Event) {
			w.set(func(w *world) { w.events = append(w.events, e.Type+" "+e.Reason+": "+e.Message) })
		},
		Refresh:    func(context.Context) { w.set(func(w *world) { w.refreshed++ }) },
		Connection: node.Connection{Unreachable: func() { w.set(func(w *world) { w.unreachable++ }) }},
		Hooks: node.Hooks{
			Registered: func(time.Duration, bool) { w.set(func(w *world) { w.registered++ }) },
			Ready:      func(d time.Duration) { w.set(func(w *world) { w.readyAfter = d }) },
		},
	}
}

func (w *world) emitted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// run runs a node for the length of steps, in virtual time.
func run(t *testing.T, w *world, cfg node.Config, steps func(n *node.Node)) {
	t.Helper()
	n, err := node.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	steps(n)
	cancel()
	require.NoError(t, <-done)
	require.EqualError(t, n.Run(ctx), "node: Node.Run was called before")
}

// after lets so much time go by that everything due by then has been done.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func condition(n *v1.Node, kind v1.NodeConditionType) v1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.NodeCondition{}
}
