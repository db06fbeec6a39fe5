package kubelet

import (
	"net"

	"github.com/kubeparts/kubeparts/kube/node"
)

// A member is the fourth wing of a kubelet: its Node object and lease in the cluster. A nil
// *member is that of a standalone kubelet.
type member struct{ node *node.Node }

func openMember(s *stores, m *machine, p *podPipeline) (*member, error) {
	if s.cluster == nil {
		return nil, nil
	}
	n, err := newNode(s.cluster.conn.base(s.base), nodeDeps{
		cluster: s.cluster, port: portOf(s.ports.api),
		services: m.services, runtime: m.runtime, declared: m.declared, cgroups: m.cgroups, managers: m.managers, images: m.images, volumes: m.volumes,
		agent: p.agent, evictions: p.evictions,
	})
	return &member{n}, err
}

func (w *member) components(s *stores, p *podPipeline) []component {
	if w == nil {
		return nil
	}
	return []component{w.node.Run, s.queues.node.deliver(w.node.Update), s.queues.statuses.deliver(p.agent.Status().Retry)}
}

// portOf returns the port of a listener; 0 if it is nil.
func portOf(l net.Listener) int32 {
	if l == nil {
		return 0
	}
	return int32(l.Addr().(*net.TCPAddr).Port)
}
