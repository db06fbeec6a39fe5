// Package member is the fourth wing of a kubelet: its Node object and lease in the cluster.
package member

import (
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/node"
)

// A member is the fourth wing of a kubelet: its Node object and lease in the cluster. A nil
// *member belongs to a standalone kubelet.
type member struct{ node *node.Node }

func Open(s *stores.Stores, m *machine.Machine, p *podwing.Pipeline) (*member, error) {
	if s.Cluster == nil {
		return nil, nil
	}
	n, err := newNode(s.Cluster.Conn.Base(s.Base), nodeDeps{
		cluster: s.Cluster, port: stores.PortOf(s.Ports.API),
		runtime: m.Runtime, backend: m.Backend, declared: m.Declared, cgroups: m.Cgroups, managers: m.Managers, images: m.Images, volumes: m.Volumes,
		agent: p.Agent, evictions: p.Evictions,
	})
	return &member{n}, err
}

func (w *member) Components(s *stores.Stores, p *podwing.Pipeline) []stores.Component {
	if w == nil {
		return nil
	}
	return []stores.Component{w.node.Run, s.Queues.Node.Deliver(w.node.Update), s.Queues.Statuses.Deliver(p.Agent.Status().Retry)}
}
