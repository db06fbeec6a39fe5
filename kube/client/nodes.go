package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// A NodesConfig configures a Nodes.
type NodesConfig struct {
	// Client reads the nodes. Required.
	Client kubernetes.Interface

	// Observed is called with each node that is added or changed, or, with deleted, that no
	// longer exists. It is called on the goroutine of Run and must not block. May be nil.
	Observed func(node *v1.Node, deleted bool)

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger
}

// Nodes follows the nodes of a cluster with one watch.
type Nodes struct {
	cfg NodesConfig
	ran atomic.Bool // Run was called

	mu     sync.Mutex // guards the field below
	byName map[string]*v1.Node
}

// NewNodes returns a Nodes, or an error if cfg is invalid. It starts nothing.
func NewNodes(cfg NodesConfig) (*Nodes, error) {
	if cfg.Client == nil {
		return nil, errors.New("client: NodesConfig.Client is nil")
	}
	cfg.Logger = quiet(cfg.Logger)
	return &Nodes{cfg: cfg, byName: map[string]*v1.Node{}}, nil
}

// Run follows the nodes until ctx is done; then it returns nil. It returns an error if it
// was called before.
func (n *Nodes) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return errors.New("client: Nodes.Run was called before")
	}
	nodes := n.cfg.Client.CoreV1().Nodes()
	follow(ctx, following[*v1.Node]{
		list:  lister(nodes.List),
		watch: nodes.Watch,
		lists: noWatchList(n.cfg.Client),
		store: n,
		failed: func(err error) {
			n.cfg.Logger.Warn("Failed to watch nodes; the last nodes remain; will retry", "err", err)
		},
	})
	return nil
}

// Node returns a node as last read; nil if there is none, or if the nodes were not read yet.
// It is shared and must not be modified.
func (n *Nodes) Node(name string) *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}

// replace implements store.
func (n *Nodes) replace(list []*v1.Node) {
	n.mu.Lock()
	gone := n.byName
	n.byName = make(map[string]*v1.Node, len(list))
	for _, node := range list {
		n.byName[node.Name] = node
		delete(gone, node.Name)
	}
	n.mu.Unlock()
	for _, node := range gone {
		n.observed(node, true)
	}
	for _, node := range list {
		n.observed(node, false)
	}
}

// put implements store.
func (n *Nodes) put(node *v1.Node) {
	n.mu.Lock()
	n.byName[node.Name] = node
	n.mu.Unlock()
	n.observed(node, false)
}

// drop implements store.
func (n *Nodes) drop(node *v1.Node) {
	n.mu.Lock()
	delete(n.byName, node.Name)
	n.mu.Unlock()
	n.observed(node, true)
}

func (n *Nodes) observed(node *v1.Node, deleted bool) {
	if n.cfg.Observed != nil {
		n.cfg.Observed(node, deleted)
	}
}
