package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type healthMetrics struct {
	now   *prometheus.GaugeVec
	total *prometheus.CounterVec
}

func (h *healthMetrics) declare(s *family.Set) { // rule st-18
	h.now = s.Gauges("Metrics.Check", "kubernetes_healthcheck", "Result of the last health check: 1 if healthy.", "name", "type")
	h.total = s.Counters("Metrics.Check", "kubernetes_healthchecks_total", "Number of health checks, by result.", "name", "type", "status")
}

// Check returns a function that calls check and counts its results: those of /healthz have
// the type "healthz". A nil error means healthy. A check that was never called has no
// metric.
func (m *Metrics) Check(typ, name string, check func() error) func() error {
	good, bad := m.health.total.WithLabelValues(name, typ, "success"), m.health.total.WithLabelValues(name, typ, "error")
	return func() error {
		err := check()
		if err != nil {
			m.health.now.WithLabelValues(name, typ).Set(0)
			bad.Inc()
			return err
		}
		m.health.now.WithLabelValues(name, typ).Set(1)
		good.Inc()
		return nil
	}
}
