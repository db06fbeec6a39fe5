// Package edge is the last wing of a kubelet: what others read of it.
package edge

import (
	"net"
	"net/http"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// The Edge is the last wing of a kubelet: what others read of it. It serves the kubelet's API, the
// metrics and the status page, and notifies systemd.
type Edge struct {
	APIAddr net.Addr // nil: the API is not served
	Page    http.Handler
	api     []stores.Component
	systemd stores.Component // nil: systemd is not notified

	Stopping func() // is called when the kubelet begins to stop
}

func Open(s *stores.Stores, m *machine.Machine, p *podwing.Pipeline) (e *Edge, err error) {
	e = &Edge{Stopping: func() {}}
	var certificate serving
	if s.Ports.API != nil {
		e.APIAddr = s.Ports.API.Addr()
		if certificate, err = newServing(s.Base, s.Cluster, s.HostIPs()); err != nil {
			return nil, err
		}
	}
	scraped := newMetrics(s.Base, metricsDeps{
		agent: p.Agent, allocation: m.Allocation, volumes: m.Volumes, managers: m.Managers, claims: m.Claims, stats: m.Stats, cgroups: m.Cgroups, cluster: s.Cluster, serving: certificate,
		runtime: m.CRI,
	})
	if e.api, err = newServer(s.Base, ServerDeps{
		Ports: s.Ports, Cluster: s.Cluster, agent: p.Agent, runtime: m.Runtime, cgroups: m.Cgroups, stats: m.Stats, metrics: scraped, serving: certificate,
	}); err != nil {
		return nil, err
	}
	if e.Page, err = newStatusPage(s.Base, pageDeps{
		agent: p.Agent, history: s.History, runtime: m.Runtime.Display, sources: p.Sources, volumes: m.Volumes, evictions: p.Evictions, images: m.Images,
		stats: m.Stats, metrics: scraped,
	}); err != nil {
		return nil, err
	}
	if s.Config.Host.NotifySystemd {
		e.systemd = newSystemdNotifier(s.Base, p.Agent)
		e.Stopping = func() { notifySystemd(s.Base, daemon.SdNotifyStopping) }
	}
	return e, nil
}

func (e *Edge) Components() []stores.Component {
	if e.systemd == nil {
		return e.api
	}
	return append(e.api, e.systemd)
}
