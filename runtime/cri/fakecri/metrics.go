package fakecri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The metrics of containers, with cAdvisor's names.
var (
	cpuMetric = &runtimeapi.MetricDescriptor{
		Name: "container_cpu_usage_seconds_total", Help: "Cumulative cpu time consumed in seconds.",
	}
	memoryMetric = &runtimeapi.MetricDescriptor{
		Name: "container_memory_working_set_bytes", Help: "Current working set in bytes.",
	}
)

// ListMetricDescriptors returns the descriptors of the metrics of ListPodSandboxMetrics.
func (r *Runtime) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return call(ctx, r, fake.Call{Method: "ListMetricDescriptors"}, func(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
		return []*runtimeapi.MetricDescriptor{cpuMetric, memoryMetric}, nil
	})
}

// ListPodSandboxMetrics returns the values of ListPodSandboxStats for ready sandboxes as
// metrics.
func (r *Runtime) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return callLocked(ctx, r, fake.Call{Method: "ListPodSandboxMetrics"}, func() ([]*runtimeapi.PodSandboxMetrics, error) {
		now := time.Now()
		var list []*runtimeapi.PodSandboxMetrics
		for s := range r.sandboxes.all() {
			if !s.ready {
				continue
			}
			pod := &runtimeapi.PodSandboxMetrics{PodSandboxId: s.id}
			for _, c := range s.containers {
				if c.running() {
					pod.ContainerMetrics = append(pod.ContainerMetrics, c.metricsLocked(now))
				}
			}
			list = append(list, pod)
		}
		return list, nil
	})
}

func (c *container) metricsLocked(now time.Time) *runtimeapi.ContainerMetrics {
	metric := func(d *runtimeapi.MetricDescriptor, kind runtimeapi.MetricType, value float64) *runtimeapi.Metric {
		m := &runtimeapi.Metric{Name: d.Name, Timestamp: now.UnixNano(), MetricType: kind}
		setMetricValue(m, value)
		return m
	}
	return &runtimeapi.ContainerMetrics{ContainerId: c.id, Metrics: []*runtimeapi.Metric{
		metric(cpuMetric, runtimeapi.MetricType_COUNTER, float64(c.cpuLocked(now))/float64(time.Second)),
		metric(memoryMetric, runtimeapi.MetricType_GAUGE, float64(c.behavior.Memory.Bytes(c.age(now)))),
	}}
}
