package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

type probeMetrics struct {
	total, deferred *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	lag             prometheus.Observer
}

func (p *probeMetrics) declare(s *family.Set) {
	p.total = s.Counters("prober.Hooks.Ran", "prober_probe_total", "Probe attempts, by result.", "probe_type", "result", "container", "pod", "namespace", "pod_uid")
	p.duration = s.Histograms("prober.Hooks.Ran", "prober_probe_duration_seconds", "Duration of probe attempts that did not fail.", quick, "probe_type", "container", "pod", "namespace")
	p.deferred = s.Counters("prober.Hooks.Deferred", "prober_deferred_total", "Probe attempts that were delayed by the limit of concurrent probes.", "probe_type")
	p.lag = s.Histogram("prober.Hooks.Ran", "kubeparts_prober_lag_seconds", "Delay of probe attempts.", quick)
}

var probeTypes = map[prober.Kind]string{prober.Liveness: "Liveness", prober.Readiness: "Readiness", prober.Startup: "Startup"}

// Prober returns the hooks of a prober.Manager.
func (m *Metrics) Prober() prober.Hooks {
	p := &m.probe
	return prober.Hooks{
		Ran: func(i prober.AttemptInfo) {
			p.lag.Observe(i.Lag.Seconds())
			typ := probeTypes[i.Kind]
			if i.Err == nil { // rule prober-26
				p.total.WithLabelValues(typ, probeResult(i.Result), i.Container, i.Pod.Name, i.Pod.Namespace, string(i.Pod.UID)).Inc()
			}
			if i.Result != runtime.ProbeFailure { // rule prober-27
				p.duration.WithLabelValues(typ, i.Container, i.Pod.Name, i.Pod.Namespace).Observe(i.Duration.Seconds())
			}
		},
		Deferred: func(_ *v1.Pod, _ string, kind prober.Kind) { p.deferred.WithLabelValues(probeTypes[kind]).Inc() },
		Removed: func(pod *v1.Pod, container string, kind prober.Kind) { // rule prober-9
			p.total.DeletePartialMatch(prometheus.Labels{"probe_type": probeTypes[kind], "container": container, "pod_uid": string(pod.UID)})
			p.duration.DeleteLabelValues(probeTypes[kind], container, pod.Name, pod.Namespace)
		},
	}
}

func probeResult(r runtime.ProbeResult) string {
	switch r {
	case runtime.ProbeSuccess:
		return "successful"
	case runtime.ProbeFailure:
		return "failed"
	default:
		return "unknown"
	}
}
