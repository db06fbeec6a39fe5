package fakenode

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
)

// nodeClient returns the client of Node objects for the agents.
func (n *Nodes) nodeClient() node.Nodes {
	api := n.conn.Heartbeats.CoreV1().Nodes()
	if n.cfg.API.OwnWatches {
		return api
	}
	return cachedNodes{api, n.nodes}
}

// cachedNodes reads nodes from the shared watch where the response of an API server may
// come from its cache. Each node reads its object every 10 s.
type cachedNodes struct {
	node.Nodes
	cache *client.Nodes
}

// Get implements node.Nodes.
func (c cachedNodes) Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1.Node, error) {
	if opts.ResourceVersion == "0" {
		if o := c.cache.Node(name); o != nil {
			return o, nil
		}
	}
	return c.Nodes.Get(ctx, name, opts)
}
