package fakenode

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/client"
)

// Nodes are fake nodes. Make them with [New], or with [Start] in a test.
type Nodes struct {
	cfg    Config
	ran    atomic.Bool // Run was called
	conn   *client.Connection
	feed   *client.Feed // nil: each node has a watch of its own
	agents []*agent
	stop   func() // set by Start
	byName map[string]*agent
	binder *binder // nil: somebody else schedules

	addresses atomic.Uint32 // of pods, given out so far
}

// New returns the nodes that cfg describes, for the API server of api. It calls
// nobody yet.
func New(api *rest.Config, cfg Config) (*Nodes, error) {
	if err := cfg.complete(api); err != nil {
		return nil, err
	}
	conn, err := client.ConnectTo(api, client.Config{
		QPS: cfg.QPS, Burst: cfg.Burst, EventQPS: cfg.QPS, EventBurst: cfg.Burst, UserAgent: "kubeparts-fakenode", HeartbeatTimeout: 10 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("fakenode: %w", err)
	}
	n := &Nodes{cfg: cfg, conn: conn, byName: map[string]*agent{}}
	feed := client.FeedConfig{Client: conn.API, Logger: cfg.Logger}
	if !cfg.NoScheduler {
		if n.binder, err = newBinder(n); err != nil {
			return nil, fmt.Errorf("fakenode: %w", err)
		}
		feed.Saw = n.binder.saw
	}
	if n.feed, err = client.NewFeed(feed); err != nil {
		return nil, fmt.Errorf("fakenode: %w", err)
	}
	for i, spec := range cfg.Nodes {
		a, err := newAgent(n, i, spec)
		if err != nil {
			return nil, fmt.Errorf("fakenode: node %s: %w", spec.Name, err)
		}
		n.agents = append(n.agents, a)
		n.byName[spec.Name] = a
	}
	return n, nil
}

// Run registers the nodes and runs their pods until ctx is done; then it returns nil.
// The objects in the API server stay there; see [Nodes.Remove]. A second call returns
// an error.
func (n *Nodes) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return errors.New("fakenode: Nodes.Run was called before")
	}
	var runs []func(context.Context) error
	if !n.cfg.OwnWatches || n.binder != nil {
		runs = append(runs, n.feed.Run)
	}
	if n.binder != nil {
		runs = append(runs, n.binder.run)
	}
	for _, a := range n.agents {
		runs = append(runs, a.run)
	}
	return together(ctx, runs...)
}

// Wait returns when all nodes have said that they are ready, or with an error that
// names one that has not when ctx ends.
func (n *Nodes) Wait(ctx context.Context) error {
	for _, a := range n.agents {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return fmt.Errorf("fakenode: node %s is not ready: %w; it said last: %w (does the API server run, and may this user create nodes, leases and pods' statuses?)", a.spec.Name, context.Cause(ctx), a.trouble())
		}
	}
	return nil
}

// Names returns the names of the nodes.
func (n *Nodes) Names() []string {
	var names []string
	for _, a := range n.agents {
		names = append(names, a.spec.Name)
	}
	return names
}

// address gives out an address of 10.0.0.0/8 to a pod.
func (n *Nodes) address() string {
	i := n.addresses.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
}

// find returns the pod as the node that it is on has it.
func (n *Nodes) find(namespace, name string) (*agent, *v1.Pod, error) {
	for _, a := range n.agents {
		if pod := a.whole.Loop().PodByName(namespace, name); pod != nil {
			return a, pod, nil
		}
	}
	return nil, nil, fmt.Errorf("fakenode: no pod %s/%s is on any of these nodes: it may not be bound yet; wait until its phase is Running", namespace, name)
}

// errNothing is what a node says that has had no trouble.
var errNothing = errors.New("nothing")
