package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GatherResource returns the metrics of /metrics/resource, for a server that encodes them
// itself, from usage, as Stats.CPUAndMemory returns it, with err: the metric
// resource_scrape_error reports an error. usage may be nil.
func (m *Metrics) GatherResource(usage *statsapi.Summary, err error) ([]*dto.MetricFamily, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(moment{func(out sink) { m.sendResource(usage, err, nil, out) }}); err != nil {
		return nil, fmt.Errorf("metrics: gather: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: gather: %w", err)
	}
	return families, nil
}
