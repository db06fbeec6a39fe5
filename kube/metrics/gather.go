package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GatherResource returns the metrics of /metrics/resource, for a server that encodes them
// itself. usage has the meaning of Stats.CPUAndMemory; if it fails, the metric
// resource_scrape_error reports it.
func (m *Metrics) GatherResource(ctx context.Context, usage func(context.Context) (*statsapi.Summary, error)) ([]*dto.MetricFamily, error) {
	registry := prometheus.NewRegistry()
	sources := Sources{Stats: Stats{CPUAndMemory: usage}}
	if err := registry.Register(moment{func(out sink) { m.collectResource(ctx, &sources, out) }}); err != nil {
		return nil, fmt.Errorf("metrics: gather: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: gather: %w", err)
	}
	return families, nil
}
