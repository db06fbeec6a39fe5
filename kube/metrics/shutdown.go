package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/shutdown"
)

type shutdownMetrics struct {
	began, ended prometheus.Gauge
	late         prometheus.Counter
}

func (d *shutdownMetrics) declare(s *family.Set) {
	const times = "shutdown.Hooks.Times"
	d.began = s.Gauge(times, "kubelet_graceful_shutdown_start_time_seconds", "When the machine last began to shut down, in Unix time; 0: it has not.")
	d.ended = s.Gauge(times, "kubelet_graceful_shutdown_end_time_seconds", "When the pods had ended then, in Unix time; 0: they have not.")
	d.late = s.Counter("shutdown.Hooks.Killed", "kubeparts_graceful_shutdown_late_pods_total", "Pods that have not ended in time for a shutdown.")
}

// Shutdown returns the hooks of a shutdown.Manager.
func (m *Metrics) Shutdown() shutdown.Hooks {
	d := &m.shutdown
	return shutdown.Hooks{
		Times: func(start, end time.Time) { // sh-11
			d.began.Set(unix(start))
			d.ended.Set(unix(end))
		},
		Killed: func(i shutdown.KilledInfo) {
			if i.Err != nil {
				d.late.Inc()
			}
		},
	}
}
