package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/podsource"
)

type sourceMetrics struct {
	pods, refused *prometheus.GaugeVec
	failed        *prometheus.CounterVec
}

func (s *sourceMetrics) declare(set *family.Set) {
	s.pods = set.Gauges("podsource.MergeHooks.Set", "kubeparts_source_pods", "Desired pods of a source.", "source")
	s.refused = set.Gauges("podsource.MergeHooks.Set", "kubeparts_source_refused_pods", "Pods of a source that are invalid, or conflict with those of another source.", "source")
	s.failed = set.Counters("podsource.MergeHooks.Failed", "kubeparts_source_errors_total", "Failures of a source.", "source")
}

// Sources returns the hooks of a podsource.Merge.
func (m *Metrics) Sources() podsource.MergeHooks {
	s := &m.sources
	return podsource.MergeHooks{
		Set: func(i podsource.SetInfo) {
			s.pods.WithLabelValues(i.Source).Set(float64(i.Pods))
			s.refused.WithLabelValues(i.Source).Set(float64(i.Rejected))
		},
		Failed: func(source string, _ error, _ time.Duration) { s.failed.WithLabelValues(source).Inc() },
	}
}
