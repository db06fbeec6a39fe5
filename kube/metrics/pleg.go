package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/pleg"
)

type plegMetrics struct {
	duration, interval, pod prometheus.Observer
	lastSeen                prometheus.Gauge
	failed, unhinted        prometheus.Counter
	stale                   prometheus.Gauge
	hints                   *prometheus.GaugeVec
}

func (p *plegMetrics) declare(s *family.Set) {
	const relisted = "pleg.Hooks.Relisted"
	p.duration = s.Histogram(relisted, "kubelet_pleg_relist_duration_seconds", "Duration of a relist.", quick)
	p.interval = s.Histogram(relisted, "kubelet_pleg_relist_interval_seconds", "Interval between the starts of relists.", quick)
	p.lastSeen = s.Gauge(relisted, "kubelet_pleg_last_seen_seconds", "Time of the last successful relist, in Unix time.")
	p.pod = s.Histogram("pleg.Hooks.Inspected", "kubelet_pleg_pod_relist_duration_seconds", "Duration of the inspection of a pod.", quick)
	// A kubelet drops events when its channel is full. Here none is: the alert on
	// it finds its zero.
	s.Counter("none: nothing is dropped", "kubelet_pleg_discard_events", "Events that were dropped. Always 0.")
	p.failed = s.Counter(relisted, "kubeparts_pleg_relist_errors_total", "Lists that failed.")
	p.unhinted = s.Counter(relisted, "kubeparts_pleg_unhinted_changes_total", "Changes that the runtime gave no hint of in time.")
	p.stale = s.Gauge(relisted, "kubeparts_pleg_stale_pods", "Pods that could not be inspected when last tried.")
	p.hints = s.Gauges(relisted, "kubeparts_pleg_hints", "State of the runtime's event stream: 1 for the current state.", "state")
}

// PLEG returns the hooks of a pleg.Generator.
func (m *Metrics) PLEG() pleg.Hooks {
	p := &m.pleg
	states := map[pleg.HintState]prometheus.Gauge{}
	for _, s := range []pleg.HintState{pleg.HintsNone, pleg.HintsBroken, pleg.HintsUnproven, pleg.HintsTrusted} {
		states[s] = p.hints.WithLabelValues(string(s))
	}
	return pleg.Hooks{
		Relisted: func(i pleg.RelistInfo) {
			p.duration.Observe(i.Duration.Seconds())
			if i.Interval > 0 {
				p.interval.Observe(i.Interval.Seconds())
			}
			if i.Err != nil {
				p.failed.Inc()
			} else {
				p.lastSeen.Set(seconds(i.Start))
			}
			p.unhinted.Add(float64(i.Unhinted))
			p.stale.Set(float64(i.Stale))
			for s, gauge := range states {
				gauge.Set(number(s == i.Hints))
			}
		},
		Inspected: func(i pleg.InspectInfo) { p.pod.Observe(i.Duration.Seconds()) },
	}
}
