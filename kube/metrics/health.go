package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type healthMetrics struct {
	now   *prometheus.GaugeVec
	total *prometheus.CounterVec
}

func (h *healthMetrics) declare(s *family.Set) { // st-18
	h.now = s.Gauges("Metrics.Check", "kubernetes_healthcheck", "Whether a check was well when it was last asked: 1 if it was.", "name", "type")
	h.total = s.Counters("Metrics.Check", "kubernetes_healthchecks_total", "How often a check was asked, by what it said.", "name", "type", "status")
}

// Check returns a check that is counted whenever it is asked: those of /healthz have
// the type "healthz". A nil error means that all is well (st-18). What was never asked
// is neither well nor ill, and is not told.
func (m *Metrics) Check(typ, name string, ask func() error) func() error {
	good, bad := m.health.total.WithLabelValues(name, typ, "success"), m.health.total.WithLabelValues(name, typ, "error")
	return func() error {
		err := ask()
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
