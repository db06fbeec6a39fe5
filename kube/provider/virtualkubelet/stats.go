package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
)

// GetStatsSummary implements nodeutil.Provider: it returns the usage that the runtime
// reports as a runtime.StatsProvider, at most 15 seconds old. The CPU and memory of the node
// are the sums of its pods; the CPU time includes terminated pods. It returns an error that
// is runtime.ErrUnsupported if the runtime reports no usage.
func (p *Provider) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	return p.usage.summary(ctx)
}

// GetMetricsResource implements nodeutil.Provider: it returns the metrics of
// /metrics/resource, which metrics-server reads, from the values of GetStatsSummary.
func (p *Provider) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	summary, err := p.usage.summary(ctx)
	if err != nil {
		return nil, err
	}
	return p.usage.metrics.GatherResource(summary, nil)
}

// usage is the resource usage of a node and its pods.
type usage struct {
	runtime   runtime.Runtime
	collector *stats.Collector
	metrics   *metrics.Metrics
}

func newUsage(cfg provider.Config) (*usage, error) {
	u := &usage{runtime: cfg.Runtime}
	var err error
	if u.collector, err = stats.New(stats.Config{NodeName: cfg.NodeName, Runtime: measured{cfg.Runtime}, Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	u.metrics, err = metrics.New(metrics.Config{NodeName: cfg.NodeName, WithoutProcess: true})
	return u, err
}

func (u *usage) summary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	if _, ok := compose.As[runtime.StatsProvider](u.runtime); !ok {
		return nil, fmt.Errorf("virtualkubelet: stats: %w", runtime.ErrUnsupported)
	}
	summary, err := u.collector.Summary(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("virtualkubelet: stats: %w", err)
	}
	return summary, nil
}

// measured is a stats.Runtime over the optional interfaces of a Runtime.
type measured struct{ runtime.Runtime }

// PodStats implements stats.Runtime.
func (m measured) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	p, ok := compose.As[runtime.StatsProvider](m.Runtime)
	if !ok {
		return nil, runtime.ErrUnsupported
	}
	return p.PodStats(ctx)
}

// ImageFS implements stats.Runtime. A backend without images on this host has none.
func (m measured) ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error) {
	r, ok := compose.As[runtime.ImageFSReporter](m.Runtime)
	if !ok {
		return nil, nil, nil
	}
	if images, containers, err = r.ImageFS(ctx); errors.Is(err, runtime.ErrUnsupported) {
		return nil, nil, nil
	}
	return images, containers, err
}
