package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type evictionMetrics struct {
	evicted, failed, invalid *prometheus.CounterVec
	age                      *prometheus.HistogramVec
	pass                     prometheus.Observer
}

func (e *evictionMetrics) declare(s *family.Set) {
	e.evicted = s.Counters("eviction.Hooks.Passed", "kubelet_evictions", "Evicted pods, by the signal whose threshold was met.", "eviction_signal")
	e.age = s.Histograms("eviction.Hooks.Passed", "kubelet_eviction_stats_age_seconds", "Age of the stats by which pods were evicted.", quick, "eviction_signal")
	e.failed = s.Counters("eviction.Hooks.Passed", "kubeparts_eviction_errors_total", "Evictions that failed.", "eviction_signal")
	e.invalid = s.Counters("eviction.Hooks.Planned", "kubeparts_eviction_invalid_figures_total", "Implausible values in the stats.", "eviction_signal")
	e.pass = s.Histogram("eviction.Hooks.Passed", "kubeparts_eviction_pass_duration_seconds", "Duration of a pass of the eviction manager, including evictions.", quick)
}

// Eviction returns the hooks of an eviction.Manager.
func (m *Metrics) Eviction() eviction.Hooks {
	e := &m.eviction
	return eviction.Hooks{
		Planned: func(p *eviction.Plan) {
			for _, o := range p.Invalid {
				e.invalid.WithLabelValues(string(o.Signal)).Inc()
			}
		},
		Passed: e.passed,
	}
}

// passed counts the evictions of a pass, by the signal whose threshold was met (rule ev-29).
func (e *evictionMetrics) passed(r eviction.Result, _ error) {
	e.pass.Observe(r.Duration.Seconds())
	for _, v := range r.Evicted {
		e.evicted.WithLabelValues(v.Signal).Inc()
	}
	for _, v := range r.Failed {
		e.failed.WithLabelValues(v.Signal).Inc()
	}
	if r.RankedAt.IsZero() {
		return
	}
	for _, met := range cmp.Or(r.After, r.Plan).Met {
		if met.Acts() && !met.At.IsZero() {
			e.age.WithLabelValues(string(met.Threshold.Signal)).Observe(r.RankedAt.Sub(met.At).Seconds())
		}
	}
}

type imageMetrics struct {
	removed *prometheus.CounterVec
	freed   prometheus.Counter
	failed  prometheus.Counter
}

func (i *imageMetrics) declare(s *family.Set) {
	i.removed = s.Counters("imagegc.Hooks.Removed", "kubelet_image_garbage_collected_total", "Deleted images, by reason: space, age or denied.", "reason")
	i.freed = s.Counter("imagegc.Hooks.Removed", "kubeparts_image_gc_freed_bytes_total", "Measured disk space that was freed by deleted images.")
	i.failed = s.Counter("imagegc.Hooks.Passed", "kubeparts_image_gc_errors_total", "Passes of the image garbage collection that failed.")
}

// ImageGC returns the hooks of an imagegc.Manager.
func (m *Metrics) ImageGC() imagegc.Hooks {
	i := &m.images
	return imagegc.Hooks{
		Removed: func(r imagegc.RemovedInfo) { // rule ig-17
			i.removed.WithLabelValues(r.Reason).Inc()
			if r.Measured && r.Freed > 0 {
				i.freed.Add(float64(r.Freed))
			}
		},
		Passed: func(p imagegc.PassInfo) {
			if p.Err != nil {
				i.failed.Inc()
			}
		},
	}
}
