package remote

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
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
	insecure, sleepCut          prometheus.Counter
}

func (r *runtimeMetrics) declare(s *family.Set) {
	const called, acted, hooked = "cri.Hooks.Called", "cri.Hooks.Acted", "cri.Hooks.Hooked"
	r.calls = s.Counters(called, "kubelet_runtime_operations_total", "Calls of the CRI.", "operation_type")
	r.callErrors = s.Counters(called, "kubelet_runtime_operations_errors_total", "Calls of the CRI that failed.", "operation_type")
	r.callDuration = s.Histograms(called, "kubelet_runtime_operations_duration_seconds", "How long calls of the CRI took.", prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type")
	r.sandbox = s.Histograms(acted, "kubelet_run_podsandbox_duration_seconds", "How long it took to make a sandbox.", nil, "runtime_handler")
	r.sandboxErrors = s.Counters(acted, "kubelet_run_podsandbox_errors_total", "Sandboxes that could not be made.", "runtime_handler")
	r.pods = s.Counter(acted, "kubelet_started_pods_total", "Sandboxes of pods that were begun.")
	r.podErrors = s.Counter(acted, "kubelet_started_pods_errors_total", "Sandboxes of pods that were begun, and failed.")
	r.userPods = s.Counter(acted, "kubelet_started_user_namespaced_pods_total", "Sandboxes of pods with users of their own that were begun.")
	r.userPodErrors = s.Counter(acted, "kubelet_started_user_namespaced_pods_errors_total", "Sandboxes of pods with users of their own that were begun, and failed.")
	r.containers = s.Counters(acted, "kubelet_started_containers_total", "Starts of containers that were begun.", "container_type")
	r.containerErrors = s.Counters(acted, "kubelet_started_containers_errors_total", "Starts of containers that failed, by what the container then waits for.", "container_type", "code")
	r.insecure = s.Counter(hooked, "kubelet_lifecycle_handler_http_fallbacks_total", "Requests of lifecycle hooks over HTTPS that were answered without TLS.")
	r.sleepCut = s.Counter(hooked, "kubelet_sleep_action_terminated_early_total", "Sleeps of lifecycle hooks that were cut off.")
}

// Runtime returns the hooks of a cri.Runtime (rt-152).
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
			return // it was put off, not begun
		}
		typ := containerType(i.Pod, i.Action.Target)
		m.containers.WithLabelValues(typ).Inc()
		if i.Action.Err != nil {
			m.containerErrors.WithLabelValues(typ, i.Action.Reason).Inc()
		}
	}
}

// one counts one of all, and one that failed if it did.
func one(all, failed prometheus.Counter, err error) {
	all.Inc()
	if err != nil {
		failed.Inc()
	}
}

// containerType says which of a pod's lists a container is in.
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

// sleeps says whether that hook of a container is a sleep.
func sleeps(pod *v1.Pod, container, kind string) bool {
	if pod == nil {
		return false
	}
	c := podspec.Container(pod, container)
	if c == nil || c.Lifecycle == nil {
		return false
	}
	hook := c.Lifecycle.PreStop
	if kind == "PostStart" {
		hook = c.Lifecycle.PostStart
	}
	return hook != nil && hook.Sleep != nil
}
