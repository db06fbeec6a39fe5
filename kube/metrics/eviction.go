package metrics

import (
	"time"

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
	e.evicted = s.Counters("eviction.Hooks.Evicted", "kubelet_evictions", "Evicted pods, by the signal whose threshold was met.", "eviction_signal")
	e.age = s.Histograms("eviction.Hooks.StatsAge", "kubelet_eviction_stats_age_seconds", "Age of the stats by which pods were evicted.", quick, "eviction_signal")
	e.failed = s.Counters("eviction.Hooks.KillFailed", "kubeparts_eviction_errors_total", "Evictions that failed.", "eviction_signal")
	e.invalid = s.Counters("eviction.Hooks.Invalid", "kubeparts_eviction_invalid_figures_total", "Implausible values in the stats.", "eviction_signal")
	e.pass = s.Histogram("eviction.Hooks.Passed", "kubeparts_eviction_pass_duration_seconds", "Duration of a pass of the eviction manager, including evictions.", quick)
}

// Eviction returns the hooks of an eviction.Manager.
func (m *Metrics) Eviction() eviction.Hooks {
	e := &m.eviction
	return eviction.Hooks{
		Passed:     func(r eviction.Result, _ error) { e.pass.Observe(r.Duration.Seconds()) },
		Evicted:    func(v eviction.Victim) { e.evicted.WithLabelValues(v.Signal).Inc() }, // rule ev-29
		KillFailed: func(v eviction.Victim, _ error) { e.failed.WithLabelValues(v.Signal).Inc() },
		StatsAge: func(s eviction.Signal, age time.Duration) { // rule ev-29
			e.age.WithLabelValues(string(s)).Observe(age.Seconds())
		},
		Invalid: func(o eviction.Observation) { e.invalid.WithLabelValues(string(o.Signal)).Inc() },
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
