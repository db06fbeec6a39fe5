package virtualkubelet

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/provider"
)

// A Provider is a nodeutil.Provider and a node.PodNotifier of virtual-kubelet. New
// constructs it. Safe for concurrent use.
type Provider struct {
	*provider.Provider

	nodeName string
	usage    *usage
}

var (
	_ nodeutil.Provider = (*Provider)(nil)
	_ node.PodNotifier  = (*Provider)(nil)
)

// New returns a Provider. It starts nothing and does not call the runtime. It returns an
// error if cfg.Runtime is nil, cfg.NodeName is empty, or a part of the agent rejects its
// configuration.
func New(cfg provider.Config) (*Provider, error) {
	if cfg.NodeName == "" {
		return nil, errors.New("virtualkubelet: Config.NodeName is empty")
	}
	pods, err := provider.New(cfg)
	if err != nil {
		return nil, err
	}
	p := &Provider{Provider: pods, nodeName: cfg.NodeName}
	if p.usage, err = newUsage(cfg); err != nil {
		return nil, fmt.Errorf("virtualkubelet: %w", err)
	}
	return p, nil
}

// NewNode returns a virtual-kubelet node with the name of p and its routes: pods, logs,
// exec, attach, port-forward and statistics. The caller must run both the node and p; the
// node has no capacity and no addresses unless an option sets them in NodeSpec.
//
// auth authenticates and authorizes the requests: nodeutil.WebhookAuth asks the API server,
// nodeutil.NoAuth permits all. The HTTP server is started only if an option sets TLSConfig;
// a program that serves by itself uses NodeConfig.Handler, which NewNode sets before the
// options are applied. It returns an error if auth is nil.
func (p *Provider) NewNode(client kubernetes.Interface, auth nodeutil.Auth, opts ...nodeutil.NodeOpt) (*nodeutil.Node, error) {
	if auth == nil {
		return nil, errors.New("virtualkubelet: auth is nil: nodeutil.NoAuth would permit every client to run commands in pods")
	}
	routes := http.NewServeMux()
	all := []nodeutil.NodeOpt{
		nodeutil.WithClient(client),
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
