package remote

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

type runtimeMetrics struct {
	calls, callErrors           *prometheus.CounterVec
	callDuration                *prometheus.HistogramVec
	sandbox                     *prometheus.HistogramVec
	sandboxErrors               *prometheus.CounterVec
	pods, podErrors             prometheus.Counter
	userPods, userPodErrors     prometheus.Counter
	containers, containerErrors *prometheus.CounterVec
	failures                    *prometheus.CounterVec
	insecure, sleepCut          prometheus.Counter
}

func (r *runtimeMetrics) declare(s *family.Set) {
	const called, acted, hooked = "cri.Hooks.Called", "cri.Hooks.Acted", "cri.Hooks.Hooked"
	r.calls = s.Counters(called, "kubelet_runtime_operations_total", "CRI calls.", "operation_type")
	r.callErrors = s.Counters(called, "kubelet_runtime_operations_errors_total", "CRI calls that failed.", "operation_type")
	r.callDuration = s.Histograms(called, "kubelet_runtime_operations_duration_seconds", "Duration of CRI calls.", prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type")
	r.sandbox = s.Histograms(acted, "kubelet_run_podsandbox_duration_seconds", "Duration of the creation of a sandbox.", nil, "runtime_handler")
	r.sandboxErrors = s.Counters(acted, "kubelet_run_podsandbox_errors_total", "Sandboxes whose creation failed.", "runtime_handler")
	r.pods = s.Counter(acted, "kubelet_started_pods_total", "Sandboxes of pods.")
	r.podErrors = s.Counter(acted, "kubelet_started_pods_errors_total", "Failed sandboxes of pods.")
	r.userPods = s.Counter(acted, "kubelet_started_user_namespaced_pods_total", "Sandboxes of pods with a user namespace.")
	r.userPodErrors = s.Counter(acted, "kubelet_started_user_namespaced_pods_errors_total", "Failed sandboxes of pods with a user namespace.")
	r.containers = s.Counters(acted, "kubelet_started_containers_total", "Container starts.", "container_type")
	r.containerErrors = s.Counters(acted, "kubelet_started_containers_errors_total", "Failed container starts, by the waiting reason of the container.", "container_type", "code")
	r.failures = s.Counters(acted, "kubelet_sync_result_errors_total", "Failed actions of syncs, without those that a back-off postponed.", "action")
	r.insecure = s.Counter(hooked, "kubelet_lifecycle_handler_http_fallbacks_total", "HTTPS requests of lifecycle hooks that fell back to HTTP.")
	r.sleepCut = s.Counter(hooked, "kubelet_sleep_action_terminated_early_total", "Sleep actions of lifecycle hooks that were terminated early.")
}

// Runtime returns the hooks of a cri.Runtime (rule rt-152).
func (r *Metrics) Runtime() cri.Hooks {
	m := &r.runtime
	return cri.Hooks{
		Called: func(i cri.CallInfo) {
			m.calls.WithLabelValues(i.Operation).Inc()
			m.callDuration.WithLabelValues(i.Operation).Observe(i.Duration.Seconds())
			if i.Err != nil {
				m.callErrors.WithLabelValues(i.Operation).Inc()
			}
		},
		Acted: m.acted,
		Hooked: func(i cri.HookInfo) {
			if i.Insecure {
				m.insecure.Inc()
			}
			if sleeps(i.Pod, i.Container, i.Kind) && (errors.Is(i.Err, context.Canceled) || errors.Is(i.Err, context.DeadlineExceeded)) {
				m.sleepCut.Inc()
			}
		},
	}
}

func (m *runtimeMetrics) acted(i cri.ActInfo) {
	if i.Action.Err != nil && !i.Action.Postponed() {
		m.failures.WithLabelValues(string(i.Action.Kind)).Inc()
	}
	switch i.Action.Kind {
	case runtime.CreatePodSandbox:
		m.sandbox.WithLabelValues(i.Handler).Observe(i.Duration.Seconds())
		one(m.pods, m.podErrors, i.Action.Err)
		if users := i.Pod.Spec.HostUsers; users != nil && !*users {
			one(m.userPods, m.userPodErrors, i.Action.Err)
		}
		if i.Action.Err != nil {
			m.sandboxErrors.WithLabelValues(i.Handler).Inc()
		}
	case runtime.StartContainer, runtime.InitContainer:
		if i.Action.Reason == "CrashLoopBackOff" {
			return // postponed, not started
		}
		typ := containerType(i.Pod, i.Action.Target)
		m.containers.WithLabelValues(typ).Inc()
		if i.Action.Err != nil {
			m.containerErrors.WithLabelValues(typ, i.Action.Reason).Inc()
		}
	}
}

// one increments all and, if err is not nil, failed.
func one(all, failed prometheus.Counter, err error) {
	all.Inc()
	if err != nil {
		failed.Inc()
	}
}

// containerType returns the type of a container: init_container, container or
// ephemeral_container.
func containerType(pod *v1.Pod, name string) string {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return "init_container"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return "ephemeral_container"
		}
	}
	return "container"
}

// sleeps reports whether a lifecycle hook of a container is a sleep.
func sleeps(pod *v1.Pod, container, kind string) bool {
	if pod == nil {
		return false
	}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			l := list[i].Lifecycle
			if list[i].Name != container || l == nil {
				continue
			}
			hook := l.PreStop
			if kind == "PostStart" {
				hook = l.PostStart
			}
			return hook != nil && hook.Sleep != nil
		}
	}
	return false
}
