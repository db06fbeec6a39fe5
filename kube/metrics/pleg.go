package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/pleg"
)

type plegMetrics struct {
	duration, interval, pod prometheus.Observer
	lastSeen                prometheus.Gauge
	failed, unannounced     prometheus.Counter
	stale                   prometheus.Gauge
	confidence              *prometheus.GaugeVec
}

func (p *plegMetrics) declare(s *family.Set) {
	const relisted = "pleg.Hooks.Relisted"
	p.duration = s.Histogram(relisted, "kubelet_pleg_relist_duration_seconds", "Duration of a relist.", quick)
	p.interval = s.Histogram(relisted, "kubelet_pleg_relist_interval_seconds", "Interval between the starts of relists.", quick)
	p.lastSeen = s.Gauge(relisted, "kubelet_pleg_last_seen_seconds", "Time of the last successful relist, in Unix time.")
	p.pod = s.Histogram("pleg.Hooks.Inspected", "kubelet_pleg_pod_relist_duration_seconds", "Duration of the inspection of a pod.", quick)
	// The kubelet drops events when its channel is full. Events are never dropped here; the
	// metric exists for alerts on it.
	s.Counter("none: nothing is dropped", "kubelet_pleg_discard_events", "Events that were dropped. Always 0.")
	p.failed = s.Counter(relisted, "kubeparts_pleg_relist_errors_total", "Lists that failed.")
	p.unannounced = s.Counter(relisted, "kubeparts_pleg_unannounced_changes_total", "Changes that no event of the runtime announced in time.")
	p.stale = s.Gauge(relisted, "kubeparts_pleg_stale_pods", "Pods that could not be inspected when last tried.")
	p.confidence = s.Gauges(relisted, "kubeparts_pleg_event_confidence", "Whether the events of the runtime announce all changes: 1 for the current state.", "state")
}

// PLEG returns the hooks of a pleg.Generator.
func (m *Metrics) PLEG() pleg.Hooks {
	p := &m.pleg
	states := map[pleg.Confidence]prometheus.Gauge{}
	for _, s := range []pleg.Confidence{pleg.ConfidenceNone, pleg.ConfidenceBroken, pleg.ConfidenceUnproven, pleg.ConfidenceTrusted} {
		states[s] = p.confidence.WithLabelValues(string(s))
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
			p.unannounced.Add(float64(i.Unannounced))
			p.stale.Set(float64(i.Stale))
			for s, gauge := range states {
				gauge.Set(number(s == i.Confidence))
			}
		},
		Inspected: func(i pleg.InspectInfo) { p.pod.Observe(i.Duration.Seconds()) },
	}
}
