package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/status"
)

type statusMetrics struct {
	latency    prometheus.Observer
	failed     prometheus.Counter
	terminated *prometheus.CounterVec
	refused    prometheus.Counter
}

func (s *statusMetrics) declare(set *family.Set) {
	s.latency = set.Histogram("status.Hooks.Delivered", "kubelet_pod_status_sync_duration_seconds", "From a change of a pod's status until it was delivered.",
		[]float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60})
	s.failed = set.Counter("status.Hooks.Delivered", "kubeparts_pod_status_sync_errors_total", "Deliveries of a status that failed; they are tried again.")
	s.terminated = set.Counters("status.Hooks.Terminated", "kubelet_terminated_containers_total", "Containers that have exited.", "container_type", "exit_code", "reason")
	s.refused = set.Counter("status.Hooks.Refused", "kubeparts_pod_status_refused_total", "Containers that the runtime has run again after they had exited for good.")
}

// Status returns the hooks of a status.Manager. It is by them that it is known when
// pods have started.
func (m *Metrics) Status() status.Hooks {
	s := &m.status
	return status.Hooks{
		Changed: m.starts.changed,
		Terminated: func(i status.TerminatedInfo) { // st-58
			s.terminated.WithLabelValues(i.Type, exitCode(i.Exit.ExitCode), exitReason(i.Exit.Reason)).Inc()
		},
		Refused: func(status.RefusedInfo) { s.refused.Inc() },
		Delivered: func(i status.DeliveredInfo) { // st-69
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

// exits are the reasons of exits that runtimes and agents give, which are counted by
// their name; those of others are "Other": a runtime may say any.
var exits = names(
	"Completed", "Error", "OOMKilled", "StartError", "ContainerCannotRun", "ContainerStatusUnknown", "RestartingAllContainers", "Unknown", "",
)

func exitReason(reason string) string {
	if exits[reason] {
		return reason
	}
	return "Other"
}

// exitCode is one that a program can have; of others (those of Windows have 32 bits)
// there may be any number.
func exitCode(code int32) string {
	if code < -1 || code > 255 {
		return "other"
	}
	return strconv.Itoa(int(code))
}
