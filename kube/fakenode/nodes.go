package fakenode

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/client"
)

// Nodes are fake nodes. Use [New], or [Start] in a test.
type Nodes struct {
	cfg     Config
	ran     atomic.Bool // Run was called
	conn    *client.Connection
	feed    *client.Feed  // shared watch of all pods
	nodes   *client.Nodes // shared watch of all nodes
	hosts   []*host
	stop    func() // set by Start
	byName  map[string]*host
	binder  *binder  // nil with Config.NoScheduler
	adopter *adopter // nil without Config.Adopt

	addresses atomic.Uint32 // number of allocated pod addresses
	writes    chan struct{} // of pacedSink
}

// New returns nodes for the API server of api. It does not connect to it. It returns an
// error if cfg is invalid.
func New(api *rest.Config, cfg Config) (*Nodes, error) {
	if api == nil {
		return nil, errors.New("fakenode: the REST configuration is nil: pass the result of envtest's Environment.Start, or that of a kubeconfig")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	conn, err := client.ConnectTo(api, client.Config{
		QPS: cfg.API.QPS, Burst: cfg.API.Burst, EventQPS: cfg.API.QPS, EventBurst: cfg.API.Burst, UserAgent: "kubeparts-fakenode",
		HeartbeatTimeout: -1, // package node bounds each request
	})
	if err != nil {
		return nil, fmt.Errorf("fakenode: %w", err)
	}
	return newNodes(conn, cfg)
}

// NewWithClient returns nodes that use a client: one of an API server, or a fake client of
// client-go (NewClientset of its package fake), in which pods then have nodes, UIDs and statuses. A fake
// client of controller-runtime can share the objects of one of client-go
// (examples/fakeclient). Config.API.QPS and Burst have no effect: the client has its own. It
// returns an error if cfg is invalid, or if client is a fake client and Config.API.OwnWatches is
// set, since fake clients ignore field selectors.
func NewWithClient(api kubernetes.Interface, cfg Config) (*Nodes, error) {
	if api == nil {
		return nil, errors.New("fakenode: the client is nil")
	}
	if isFake(api) {
		if cfg.API.OwnWatches {
			return nil, errors.New("fakenode: Config.API.OwnWatches is set, but a fake client does not select pods by node")
		}
		api = fakeAPI{api}
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return newNodes(&client.Connection{API: api, Events: api, Heartbeats: api}, cfg)
}

// newNodes returns nodes with a complete configuration.
func newNodes(conn *client.Connection, cfg Config) (_ *Nodes, err error) {
	n := &Nodes{cfg: cfg, conn: conn, byName: map[string]*host{}, writes: make(chan struct{}, statusWrites)}
	if cfg.Adopt != nil { // another process may have assigned the first addresses
		n.addresses.Store(rand.Uint32N(1 << 24))
	}
	feed, nodes := client.FeedConfig{Client: conn.API, Logger: cfg.Logger}, client.NodesConfig{Client: conn.API, Logger: cfg.Logger}
	if !cfg.NoScheduler {
		if n.binder, err = newBinder(n); err != nil {
			return nil, fmt.Errorf("fakenode: %w", err)
		}
		feed.Observed, nodes.Observed = n.binder.podObserved, n.binder.nodeObserved
	}
	if cfg.Adopt != nil {
		n.adopter = newAdopter(n)
		nodes.Observed = n.adopter.observed
	}
	if n.nodes, err = client.NewNodes(nodes); err != nil {
		return nil, fmt.Errorf("fakenode: %w", err)
	}
	if n.feed, err = client.NewFeed(feed); err != nil {
		return nil, fmt.Errorf("fakenode: %w", err)
	}
	for i, spec := range cfg.Nodes {
		h, err := newHost(n, i, spec, false)
		if err != nil {
			return nil, fmt.Errorf("fakenode: node %s: %w", spec.Name, err)
		}
		n.hosts = append(n.hosts, h)
		n.byName[spec.Name] = h
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
	if !n.cfg.API.OwnWatches || n.binder != nil {
		runs = append(runs, n.feed.Run)
	}
	if n.binder != nil {
		runs = append(runs, n.binder.run)
	}
	if n.binder != nil || n.adopter != nil || !n.cfg.API.OwnWatches {
		runs = append(runs, n.nodes.Run)
	}
	if n.adopter != nil {
		runs = append(runs, n.adopter.run)
	}
	for _, h := range n.hosts {
		runs = append(runs, h.run)
	}
	return runAll(ctx, runs...)
}

// Wait blocks until all of Config.Nodes are ready, and known to the scheduler. If ctx is done first,
// it returns an error with the name of a node that is not ready and the last error of its heartbeat.
func (n *Nodes) Wait(ctx context.Context) error {
	for _, h := range n.hosts {
		select {
		case <-h.ready:
		case <-ctx.Done():
			return fmt.Errorf("fakenode: node %s is not ready: %w; last error: %w (is the API server running, and may this user create nodes and leases and update pods/status?)", h.spec.Name, context.Cause(ctx), h.current().lastErr())
		}
		if n.binder == nil {
			continue
		}
		if err := n.binder.wait(ctx, h.spec.Name, isOpen); err != nil {
			return fmt.Errorf("fakenode: node %s is ready, and is not observed as ready: %w", h.spec.Name, err)
		}
	}
	return nil
}

// Names returns the names of the nodes: first the nodes of Config.Nodes, then adopted ones.
func (n *Nodes) Names() []string {
	var names []string
	for _, h := range n.all() {
		names = append(names, h.spec.Name)
	}
	return names
}

// all returns all nodes: Config.Nodes, and then the adopted ones by name.
func (n *Nodes) all() []*host {
	if n.adopter == nil {
		return n.hosts
	}
	return slices.Concat(n.hosts, n.adopter.list())
}

// find returns the node with a name; nil if there is none.
func (n *Nodes) find(name string) *host {
	if h := n.byName[name]; h != nil || n.adopter == nil {
		return h
	}
	return n.adopter.find(name)
}

// endpoint returns the kubelet API of a node, or the zero Endpoint.
func (n *Nodes) endpoint(node string) Endpoint {
	if n.cfg.Endpoint == nil {
		return Endpoint{}
	}
	return n.cfg.Endpoint(node)
}

// address returns the next pod address, in 10.0.0.0/8.
func (n *Nodes) address() string {
	i := n.addresses.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
}

// errNone is the last error of a node without errors.
var errNone = errors.New("none")
