package hollow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A Config configures hollow nodes. The zero value runs all nodes of kwok's users.
type Config struct {
	// Select selects the Node objects of other clients that are run.
	Select Selector

	// Rules are the behaviors of pods; those of their annotations take precedence. May be nil.
	Rules *Rules

	// Shard shares the nodes with other processes. The zero value does not.
	Shard Shard

	// Port serves the kubelet's API of all nodes. The zero value does not.
	Port Port

	// Nodes is the configuration of the nodes. Adopt, NoScheduler and, with Port, Endpoint are
	// set by this package, and Behave takes precedence over Rules. Kwok's annotations of usage, as they are when a
	// node first has the pod, complete both. Nodes.Nodes, which are created by the process, must be empty with Shard.
	Nodes fakenode.Config
}

// Nodes are hollow nodes. Use [New].
type Nodes struct {
	nodes  *fakenode.Nodes
	shards *shards // nil without Config.Shard
	port   *port   // nil without Config.Port
}

// New returns nodes for the API server of api. It does not connect to it. It returns an error
// that names the field of cfg that is invalid.
func New(api *rest.Config, cfg Config) (*Nodes, error) {
	selects, err := cfg.Select.matcher()
	if err != nil {
		return nil, err
	}
	if err := cfg.Shard.complete(); err != nil {
		return nil, err
	}
	if err := cfg.Port.check(); err != nil {
		return nil, err
	}
	sharded := cfg.Shard.Group != ""
	if len(cfg.Nodes.Nodes) > 0 && sharded {
		return nil, errors.New("hollow: Config.Nodes.Nodes is not empty: nodes that are shared are created by another client")
	}
	if cfg.Nodes.Logger == nil {
		cfg.Nodes.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Nodes{}
	cfg.Nodes.NoScheduler = true
	cfg.Nodes.Adopt = selects
	if rules, behave := cfg.Rules, cfg.Nodes.Behave; rules != nil {
		cfg.Nodes.Behave = rules.after(behave)
	}
	cfg.Nodes.Behave = withUsage(cfg.Nodes.Behave)
	if sharded {
		cfg.Nodes.Adopt = func(node *v1.Node) bool { return selects(node) && n.shards.runs(node.Name) }
	}
	if cfg.Port.IP.IsValid() {
		if n.port, err = newPort(cfg.Port, cfg.Nodes.Logger); err != nil {
			return nil, err
		}
		cfg.Nodes.Endpoint = n.port.endpoint
		n.port.view = func(node string) (fakenode.View, bool) { return n.nodes.View(node) }
	}
	if n.nodes, err = fakenode.New(api, cfg.Nodes); err != nil {
		return nil, fmt.Errorf("hollow: %w", err)
	}
	if sharded {
		own := rest.CopyConfig(api) // the requests of the nodes do not delay those for leases
		own.QPS, own.Burst = 0, 0
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, fmt.Errorf("hollow: %w", err)
		}
		n.shards = newShards(cfg.Shard, client.CoordinationV1().Leases(cfg.Shard.Namespace), cfg.Nodes.Logger)
		n.shards.reassess = n.nodes.Reassess
	}
	return n, nil
}

// leaveTimeout bounds the release of the lease at the end of Run.
const leaveTimeout = 5 * time.Second

// Run runs the nodes until ctx is done. Then it stops them and, with Config.Shard, releases the
// lease, so that other processes continue. Node objects and pods remain. It must be called
// once.
func (n *Nodes) Run(ctx context.Context) error {
	runs := []func(context.Context) error{n.nodes.Run}
	if n.port != nil {
		runs = append(runs, n.port.run)
	}
	if n.shards != nil {
		runs = append(runs, n.shards.run)
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error)
	for _, part := range runs {
		go func() { stopped <- part(run) }()
	}
	var err error
	for range runs {
		err = errors.Join(err, <-stopped)
		stop()
	}
	if n.shards == nil {
		return err
	}
	// The nodes have stopped, so that others can run them.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return errors.Join(err, n.shards.leave(end))
}

// Names returns the names of the nodes that this process runs.
func (n *Nodes) Names() []string { return n.nodes.Names() }
