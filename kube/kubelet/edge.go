package kubelet

import (
	"net"
	"net/http"

	"github.com/coreos/go-systemd/v22/daemon"
)

// The edge is the last wing of a kubelet: what others read of it. It serves the kubelet's API, the
// metrics and the status page, and notifies systemd.
type edge struct {
	apiAddr net.Addr // nil: the API is not served
	page    http.Handler
	api     []component
	systemd component // nil: systemd is not notified

	stopping func() // is called when the kubelet begins to stop
}

func openEdge(s *stores, m *machine, p *podPipeline) (e *edge, err error) {
	e = &edge{stopping: func() {}}
	var certificate serving
	if s.ports.api != nil {
		e.apiAddr = s.ports.api.Addr()
		if certificate, err = newServing(s.base, s.cluster, s.hostIPs()); err != nil {
			return nil, err
		}
	}
	scraped := newMetrics(s.base, metricsDeps{
		agent: p.agent, allocation: m.allocation, volumes: m.volumes, claims: m.claims, stats: m.stats, cgroups: m.cgroups, cluster: s.cluster, serving: certificate,
	})
	if e.api, err = newServer(s.base, serverDeps{
		ports: s.ports, cluster: s.cluster, agent: p.agent, runtime: m.runtime, cgroups: m.cgroups, stats: m.stats, metrics: scraped, serving: certificate,
	}); err != nil {
		return nil, err
	}
	if e.page, err = newStatusPage(s.base, pageDeps{
		agent: p.agent, history: s.history, runtime: m.services.display, sources: p.sources, volumes: m.volumes, evictions: p.evictions, images: m.images,
		stats: m.stats, metrics: scraped,
	}); err != nil {
		return nil, err
	}
	if s.cfg.Host.NotifySystemd {
		e.systemd = newSystemdNotifier(s.base, p.agent.Loop())
		e.stopping = func() { notifySystemd(s.base, daemon.SdNotifyStopping) }
	}
	return e, nil
}

func (e *edge) components() []component {
	if e.systemd == nil {
		return e.api
	}
	return append(e.api, e.systemd)
}
