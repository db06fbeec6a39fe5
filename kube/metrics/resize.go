package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type resizeMetrics struct {
	infeasible, accepted *prometheus.CounterVec
	duration, deferred   *prometheus.HistogramVec
}

func newResizes(s *family.Set) *resizeMetrics {
	const decided = "allocation.Hooks.Decided"
	return &resizeMetrics{
		infeasible: s.Counters(decided, "kubelet_pod_infeasible_resizes_total", "Infeasible resizes, by reason.", "reason_detail"),
		accepted:   s.Counters(decided, "kubelet_pod_deferred_accepted_resizes_total", "Deferred resizes that were allocated, by the trigger of the retry.", "retry_trigger"),
		duration: s.Histograms("allocation.Hooks.Resized", "kubelet_pod_resize_duration_milliseconds", "Duration from the allocation of a resize until it was actuated, in milliseconds.",
			[]float64{10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000}, "success"),
		deferred: s.Histograms("allocation.Hooks.Undeferred", "kubelet_pod_deferred_resize_duration_seconds", "Time for which resizes were deferred, by priority of the pod and by resolution.",
			[]float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}, "resolution", "priority_bucket"),
	}
}

// Allocation returns the hooks of an allocation.Manager.
func (m *Metrics) Allocation() allocation.Hooks {
	r := m.resizes
	return allocation.Hooks{
		Decided: func(i allocation.DecisionInfo) {
			switch {
			case i.After == v1.PodReasonInfeasible:
				r.infeasible.WithLabelValues(infeasible(i.Message)).Inc()
			case i.After == "" && i.Before == v1.PodReasonDeferred:
				r.accepted.WithLabelValues(i.Trigger).Inc()
			}
		},
		Undeferred: func(i allocation.UndeferredInfo) {
			if i.Duration > 0 {
				r.deferred.WithLabelValues(i.Resolution, priorityBucket(i.Pod)).Observe(i.Duration.Seconds())
			}
		},
		Resized: func(i allocation.ResizedInfo) {
			if i.Duration > 0 {
				r.duration.WithLabelValues("true").Observe(float64(i.Duration.Milliseconds()))
			}
		},
	}
}

// infeasible returns the label of the reason why a resize is infeasible.
func infeasible(message string) string {
	for _, of := range []struct{ part, detail string }{
		{"which may swap", "swap_limitation"},
		{"static CPU manager", "guaranteed_pod_cpu_manager_static_policy"},
		{"static memory manager", "guaranteed_pod_memory_manager_static_policy"},
		{"enough capacity", "insufficient_node_allocatable"},
	} {
		if strings.Contains(message, of.part) {
			return of.detail
		}
	}
	return "not_supported"
}

// priorityBucket returns the label of a pod's priority, which is 0 if it has none.
func priorityBucket(pod *v1.Pod) string {
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	switch {
	case priority >= 2_000_000_000:
		return "system-critical"
	case priority >= 100_000:
		return "high"
	case priority > 0:
		return "medium"
	case priority == 0:
		return "normal"
	case priority > -1000:
		return "low"
	default:
		return "very-low"
	}
}
