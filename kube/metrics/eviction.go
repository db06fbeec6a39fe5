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
	e.evicted = s.Counters("eviction.Hooks.Evicted", "kubelet_evictions", "Pods that were evicted, by the signal whose threshold was met.", "eviction_signal")
	e.age = s.Histograms("eviction.Hooks.StatsAge", "kubelet_eviction_stats_age_seconds", "How old the figures were by which pods were evicted.", quick, "eviction_signal")
	e.failed = s.Counters("eviction.Hooks.KillFailed", "kubeparts_eviction_errors_total", "Pods that were to be evicted, and did not end.", "eviction_signal")
	e.invalid = s.Counters("eviction.Hooks.Invalid", "kubeparts_eviction_invalid_figures_total", "Figures that cannot be true.", "eviction_signal")
	e.pass = s.Histogram("eviction.Hooks.Passed", "kubeparts_eviction_pass_duration_seconds", "How long it took to look whether somebody has to go, and to end him.", quick)
}

// Eviction returns the hooks of an eviction.Manager.
func (m *Metrics) Eviction() eviction.Hooks {
	e := &m.eviction
	return eviction.Hooks{
		Passed:     func(i eviction.PassInfo) { e.pass.Observe(i.Duration.Seconds()) },
		Evicted:    func(i eviction.Eviction) { e.evicted.WithLabelValues(i.Signal).Inc() }, // ev-29
		KillFailed: func(i eviction.Eviction, _ error) { e.failed.WithLabelValues(i.Signal).Inc() },
		StatsAge: func(s eviction.Signal, age time.Duration) { // ev-29
			e.age.WithLabelValues(string(s)).Observe(age.Seconds())
		},
		Invalid: func(i eviction.InvalidSignal) { e.invalid.WithLabelValues(string(i.Signal)).Inc() },
	}
}

type imageMetrics struct {
	removed *prometheus.CounterVec
	freed   prometheus.Counter
	failed  prometheus.Counter
}

func (i *imageMetrics) declare(s *family.Set) {
	i.removed = s.Counters("imagegc.Hooks.Removed", "kubelet_image_garbage_collected_total", "Images that were deleted, by why: space, age or denied.", "reason")
	i.freed = s.Counter("imagegc.Hooks.Removed", "kubeparts_image_gc_freed_bytes_total", "By how much the free space has grown with deleted images, as far as it was measured.")
	i.failed = s.Counter("imagegc.Hooks.Passed", "kubeparts_image_gc_errors_total", "Passes over the images that failed.")
}

// ImageGC returns the hooks of an imagegc.Manager.
func (m *Metrics) ImageGC() imagegc.Hooks {
	i := &m.images
	return imagegc.Hooks{
		Removed: func(r imagegc.RemovedInfo) { // ig-17
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
