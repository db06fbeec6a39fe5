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
	d.began = s.Gauge(times, "kubelet_graceful_shutdown_start_time_seconds", "Start of the last graceful node shutdown, in Unix time; 0 if there was none.")
	d.ended = s.Gauge(times, "kubelet_graceful_shutdown_end_time_seconds", "End of the last graceful node shutdown, in Unix time; 0 if it has not ended.")
	d.late = s.Counter("shutdown.Hooks.Killed", "kubeparts_graceful_shutdown_late_pods_total", "Pods that outlived their grace period in a shutdown and were killed.")
}

// Shutdown returns the hooks of a shutdown.Manager.
func (m *Metrics) Shutdown() shutdown.Hooks {
	d := &m.shutdown
	return shutdown.Hooks{
		Times: func(start, end time.Time) { // rule sh-11
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
