package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/podsource"
)

type sourceMetrics struct {
	pods, refused *prometheus.GaugeVec
	failed        *prometheus.CounterVec
}

func (s *sourceMetrics) declare(set *family.Set) {
	s.pods = set.Gauges("podsource.Hooks.Set", "kubeparts_source_pods", "Pods of a source that are in force.", "source")
	s.refused = set.Gauges("podsource.Hooks.Set", "kubeparts_source_refused_pods", "Pods of a source that are unusable, or that another one wants too.", "source")
	s.failed = set.Counters("podsource.Hooks.Failed", "kubeparts_source_errors_total", "How often a source broke down.", "source")
}

// Sources returns the hooks of a podsource.Merge.
func (m *Metrics) Sources() podsource.Hooks {
	s := &m.sources
	return podsource.Hooks{
		Set: func(i podsource.SetInfo) {
			s.pods.WithLabelValues(i.Source).Set(float64(i.Pods))
			s.refused.WithLabelValues(i.Source).Set(float64(i.Rejected))
		},
		Failed: func(i podsource.FailedInfo) { s.failed.WithLabelValues(i.Source).Inc() },
	}
}
