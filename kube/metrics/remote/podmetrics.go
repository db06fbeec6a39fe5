package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodMetrics has the metrics of pods and containers that a CRI runtime computes, for
// metrics.Sources.PodMetrics (feature gate PodAndContainerStatsFromCRI). Safe for concurrent
// use.
type PodMetrics struct {
	runtime PodMetricsRuntime

	mu          sync.Mutex
	descriptors map[string]descriptor // by name; nil: not read yet
}

// A PodMetricsRuntime is the part of a CRI runtime service that PodMetrics calls.
type PodMetricsRuntime interface {
	ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error)
	ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error)
}

type descriptor struct {
	*prometheus.Desc
	labels int
}

// NewPodMetrics returns the metrics of a runtime.
func NewPodMetrics(runtime PodMetricsRuntime) *PodMetrics { return &PodMetrics{runtime: runtime} }

// Collect sends the current metrics to out. It returns false if the runtime has none. Metrics
// without a descriptor, or with other labels than it, are left out and an error.
func (p *PodMetrics) Collect(ctx context.Context, out chan<- prometheus.Metric) (supported bool, err error) {
	pods, err := p.runtime.ListPodSandboxMetrics(ctx)
	if status.Code(err) == codes.Unimplemented {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("list metrics of sandboxes: %w", err)
	}
	descriptors, err := p.describe(ctx)
	if err != nil {
		return true, err
	}
	var errs []error
	for _, pod := range pods {
		errs = append(errs, send(out, descriptors, pod.GetMetrics()))
		for _, c := range pod.GetContainerMetrics() {
			errs = append(errs, send(out, descriptors, c.GetMetrics()))
		}
	}
	return true, errors.Join(errs...)
}

// describe returns the descriptors. A runtime has the same ones until it is restarted with
// another version; the kubelet reads them once, at its start.
func (p *PodMetrics) describe(ctx context.Context) (map[string]descriptor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.descriptors != nil {
		return p.descriptors, nil
	}
	list, err := p.runtime.ListMetricDescriptors(ctx)
	if err != nil {
		return nil, fmt.Errorf("list metric descriptors: %w", err)
	}
	p.descriptors = make(map[string]descriptor, len(list))
	for _, d := range list {
		p.descriptors[d.GetName()] = descriptor{prometheus.NewDesc(d.GetName(), d.GetHelp(), d.GetLabelKeys(), nil), len(d.GetLabelKeys())}
	}
	return p.descriptors, nil
}

// send returns the first error of the list.
func send(out chan<- prometheus.Metric, descriptors map[string]descriptor, list []*runtimeapi.Metric) (err error) {
	for _, m := range list {
		d, ok := descriptors[m.GetName()]
		if !ok || d.labels != len(m.GetLabelValues()) {
			err = errors.Join(err, fmt.Errorf("metric %q of the runtime has no descriptor, or other labels than it", m.GetName()))
			continue
		}
		kind := prometheus.GaugeValue
		if m.GetMetricType() == runtimeapi.MetricType_COUNTER {
			kind = prometheus.CounterValue
		}
		sample, invalid := prometheus.NewConstMetric(d.Desc, kind, metricValue(m), m.GetLabelValues()...)
		if invalid != nil {
			err = errors.Join(err, invalid)
			continue
		}
		if at := m.GetTimestamp(); at != 0 { // zero: measured for this call
			sample = prometheus.NewMetricWithTimestamp(time.Unix(0, at), sample)
		}
		out <- sample
	}
	return err
}
