package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/status"
)

type statusMetrics struct {
	latency         prometheus.Observer
	failed          prometheus.Counter
	terminated      *prometheus.CounterVec
	illegalRestarts prometheus.Counter
}

func (s *statusMetrics) declare(set *family.Set) {
	s.latency = set.Histogram("status.Hooks.Delivered", "kubelet_pod_status_sync_duration_seconds", "Duration from a change of a pod status until it was delivered.",
		[]float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60})
	s.failed = set.Counter("status.Hooks.Delivered", "kubeparts_pod_status_sync_errors_total", "Failed deliveries of a status; they are retried.")
	s.terminated = set.Counters("status.Hooks.Terminated", "kubelet_terminated_containers_total", "Terminated containers.", "container_type", "exit_code", "reason")
	s.illegalRestarts = set.Counter("status.Hooks.IllegalRestart", "kubeparts_pod_status_illegal_restarts_total", "Containers that the runtime has restarted after they had terminated.")
}

// Status returns the hooks of a status.Manager, by which the startup of pods is measured,
// too.
func (m *Metrics) Status() status.Hooks {
	s := &m.status
	return status.Hooks{
		Changed: m.starts.changed,
		Terminated: func(i status.TerminatedInfo) { // rule st-58
			s.terminated.WithLabelValues(i.Type, exitCode(i.Exit.ExitCode), exitReason(i.Exit.Reason)).Inc()
		},
		IllegalRestart: func(*v1.Pod, error) { s.illegalRestarts.Inc() },
		Delivered: func(i status.DeliveredInfo) { // rule st-69
			switch {
			case i.Err != nil:
				s.failed.Inc()
			case i.Deleted:
				m.starts.forget(i.Pod.UID)
			case i.Latency > 0:
				s.latency.Observe(i.Latency.Seconds())
			}
		},
	}
}

// exits are the reasons of terminated containers that are used as labels. Others are
// "Other", so that the number of series is bounded.
var exits = names(
	"Completed", "Error", "OOMKilled", "StartError", "ContainerCannotRun", "ContainerStatusUnknown", "RestartingAllContainers", "Unknown", "",
)

func exitReason(reason string) string {
	if exits[reason] {
		return reason
	}
	return "Other"
}

// exitCode returns the label of an exit code; codes that are not 8 bits, as on Windows,
// share a label, so that the number of series is bounded.
func exitCode(code int32) string {
	if code < -1 || code > 255 {
		return "other"
	}
	return strconv.Itoa(int(code))
}
