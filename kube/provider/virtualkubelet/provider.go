package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Provider is a nodeutil.Provider and a node.PodNotifier of virtual-kubelet. New
// constructs it. Safe for concurrent use.
type Provider struct {
	*provider.Provider

	nodeName string
	usage    *usage
	logger   *slog.Logger

	events  atomic.Pointer[client.Events] // that NewNode has set; nil: discarded
	records bool                          // Config.Record is nil, so that NewNode sets events
}

var (
	_ nodeutil.Provider = (*Provider)(nil)
	_ node.PodNotifier  = (*Provider)(nil)
)

// New returns a Provider. It starts nothing and does not call the runtime. If cfg.Record is nil,
// events are written with the client of NewNode; a function that does nothing discards them.
// New returns an error if cfg.Runtime is nil, cfg.NodeName is empty, or a part of the agent
// rejects its configuration.
func New(cfg provider.Config) (*Provider, error) {
	if cfg.NodeName == "" {
		return nil, errors.New("virtualkubelet: Config.NodeName is empty")
	}
	p := &Provider{nodeName: cfg.NodeName, logger: cfg.Logger, records: cfg.Record == nil}
	if p.records {
		cfg.Record = p.record
	}
	var err error
	if p.Provider, err = provider.New(cfg); err != nil {
		return nil, err
	}
	if p.usage, err = newUsage(cfg); err != nil {
		return nil, fmt.Errorf("virtualkubelet: %w", err)
	}
	return p, nil
}

// record passes an event to the events of NewNode.
func (p *Provider) record(e runtime.Event) {
	if events := p.events.Load(); events != nil {
		events.Record(e)
	}
}

// Run runs the pods until ctx is done, as provider.Provider.Run does, and writes their events,
// unless Config.Record is set. It must be called once, after NewNode.
func (p *Provider) Run(ctx context.Context) error {
	events := p.events.Load()
	if events == nil {
		return p.Provider.Run(ctx)
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return events.Run(running) })
	group.Go(func() error { return p.Provider.Run(running) })
	err := group.Wait()
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = events.Flush(flushing) // the errors of the API server are logged
	return err
}

// flushTimeout bounds the delivery of the last events.
const flushTimeout = 5 * time.Second

// NewNode returns a virtual-kubelet node with the name of p and its routes: pods, logs,
// exec, attach, port-forward and statistics. The caller must run both the node and p; the
// node has no capacity and no addresses unless an option sets them in NodeSpec.
//
// auth authenticates and authorizes the requests: nodeutil.WebhookAuth asks the API server,
// nodeutil.NoAuth permits all. The HTTP server is started only if an option sets TLSConfig;
// a program that serves by itself uses NodeConfig.Handler, which NewNode sets before the
// options are applied. It returns an error if auth is nil.
func (p *Provider) NewNode(api kubernetes.Interface, auth nodeutil.Auth, opts ...nodeutil.NodeOpt) (*nodeutil.Node, error) {
	if auth == nil {
		return nil, errors.New("virtualkubelet: auth is nil: nodeutil.NoAuth would permit every client to run commands in pods")
	}
	if p.records && api != nil {
		events, err := client.NewEvents(client.EventsConfig{Client: api, NodeName: p.nodeName, Logger: p.logger})
		if err != nil {
			return nil, fmt.Errorf("virtualkubelet: %w", err)
		}
		p.events.Store(events)
	}
	routes := http.NewServeMux()
	all := []nodeutil.NodeOpt{
		nodeutil.WithClient(api),
		nodeutil.AttachProviderRoutes(routes),
		func(c *nodeutil.NodeConfig) error {
			c.Handler = nodeutil.WithAuth(auth, routes)
			return nil
		},
	}
	return nodeutil.NewNode(p.nodeName, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return p, nil, nil
	}, append(all, opts...)...)
}
