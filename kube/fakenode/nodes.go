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

// Nodes are fake nodes. Use [New], or [Start] in a test.
type Nodes struct {
	cfg    Config
	ran    atomic.Bool // Run was called
	conn   *client.Connection
	feed   *client.Feed // shared watch of all pods
	agents []*agent
	stop   func() // set by Start
	byName map[string]*agent
	binder *binder // nil with Config.NoScheduler

	addresses atomic.Uint32 // number of allocated pod addresses
}

// New returns nodes for the API server of api. It does not connect to it. It returns an
// error if cfg is invalid.
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
		feed.Observed = n.binder.observed
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

// Run registers the nodes and runs their pods until ctx is done; then it returns nil. Their
// objects remain in the API server; see [Nodes.Remove]. It returns an error if it was
// called before.
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
	return runAll(ctx, runs...)
}

// Wait blocks until all nodes are ready. If ctx is done first, it returns an error with the
// name of a node that is not ready and the last error of its heartbeat.
func (n *Nodes) Wait(ctx context.Context) error {
	for _, a := range n.agents {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return fmt.Errorf("fakenode: node %s is not ready: %w; last error: %w (is the API server running, and may this user create nodes and leases and update pods/status?)", a.spec.Name, context.Cause(ctx), a.lastErr())
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

// address returns the next pod address, in 10.0.0.0/8.
func (n *Nodes) address() string {
	i := n.addresses.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
}

// find returns a pod and its node.
func (n *Nodes) find(namespace, name string) (*agent, *v1.Pod, error) {
	for _, a := range n.agents {
		if pod := a.agent.Loop().PodByName(namespace, name); pod != nil {
			return a, pod, nil
		}
	}
	return nil, nil, fmt.Errorf("fakenode: no pod %s/%s is on a fake node: it may not be bound yet; wait until its phase is Running", namespace, name)
}

// errNone is the last error of a node without errors.
var errNone = errors.New("none")
