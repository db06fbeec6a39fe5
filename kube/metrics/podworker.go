package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

type workerMetrics struct {
	duration    *prometheus.HistogramVec
	failures    *prometheus.CounterVec
	start       prometheus.Observer
	containers  prometheus.Observer
	preemptions *prometheus.CounterVec
	orphans     prometheus.Counter
	restarted   *prometheus.CounterVec
	refused     *prometheus.CounterVec
	steps       *prometheus.HistogramVec
}

func (w *workerMetrics) declare(s *family.Set) {
	const worked = "podworker.Hooks.Synced"
	w.duration = s.Histograms(worked, "kubelet_pod_worker_duration_seconds", "Duration of a sync of a pod, by type of operation.", quick, "operation_type")
	w.failures = s.Counters(worked, "kubelet_pod_worker_errors_total", "Failed syncs of pods, without those that only a back-off postponed, by type of operation.", "operation_type")
	w.start = s.Histogram(worked, "kubelet_pod_worker_start_duration_seconds", "Duration from the first observation of a pod until its first sync.", quick)
	w.containers = s.Histogram(worked, "kubelet_containers_per_pod_count", "Number of containers of new pods.", exponential(1, 2, 5))
	w.preemptions = s.Counters("podworker.Hooks.Preempted", "kubelet_preemptions", "Preempted pods, by the resource that was insufficient.", "preemption_signal")
	w.orphans = s.Counter("podworker.Hooks.Orphan", "kubelet_orphaned_runtime_pods_total", "Orphaned pods that were terminated.")
	w.restarted = s.Counters("podworker.Hooks.Restarted", "kubelet_restarted_pods_total", "Pods that were recreated with the same UID.", "static")
	w.refused = s.Counters("pipeline.Hooks.Rejected", "kubelet_admission_rejections_total", "Rejected pods, by reason.", "reason")
	w.steps = s.Histograms("pipeline.Hooks.Stepped", "kubeparts_pod_step_duration_seconds", "Duration of one step of a sync.", quick, "step")
}

// operation returns the operation_type of a sync since 1.38.
func operation(i podworker.SyncInfo) string {
	switch {
	case i.State == podworker.Terminating:
		return "terminating"
	case i.State == podworker.Cleaning:
		return "terminated"
	case i.First:
		return "create"
	default:
		return "sync"
	}
}

// operationOfDuration returns the operation_type of the duration of a sync: before 1.38 that of a termination was kill.
func operationOfDuration(i podworker.SyncInfo) string {
	if i.State == podworker.Terminating && runtime.KubernetesMinor < 38 {
		return "kill"
	}
	return operation(i)
}

// failed reports whether a sync failed. Canceled ones have not, nor have those with actions that a back-off postponed
// and no other failure.
func failed(err error) bool {
	return !errors.Is(err, context.Canceled) && hasFailure(err)
}

func hasFailure(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *runtime.ActionError:
		return !e.Action.Postponed()
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), hasFailure)
	}
	inner := errors.Unwrap(err)
	return inner == nil || hasFailure(inner)
}

// PodWorker returns the hooks of podworker.Workers and of a Loop.
func (m *Metrics) PodWorker() podworker.Hooks {
	w := &m.worker
	return podworker.Hooks{
		Synced: func(i podworker.SyncInfo) {
			w.duration.WithLabelValues(operationOfDuration(i)).Observe(i.Duration.Seconds())
			if failed(i.Err) {
				w.failures.WithLabelValues(operation(i)).Inc()
			}
			if i.First && i.Pod != nil {
				w.start.Observe(i.SinceAdded.Seconds())
				w.containers.Observe(float64(len(i.Pod.Spec.Containers)))
			}
		},
		Preempted: func(_ *v1.Pod, _ types.UID, reason string) {
			w.preemptions.WithLabelValues(strings.TrimPrefix(reason, "OutOf")).Inc()
		},
		Orphan:    func(*runtime.Pod) { w.orphans.Inc() },
		Restarted: func(pod *v1.Pod) { w.restarted.WithLabelValues(static(pod)).Inc() },
	}
}

// Pipeline returns the hooks of a pipeline.Pipeline.
func (m *Metrics) Pipeline() pipeline.Hooks {
	w := &m.worker
	return pipeline.Hooks{
		Rejected: func(_ *v1.Pod, r runtime.Rejection) { w.refused.WithLabelValues(rejection(r.Reason)).Inc() },
		Stepped:  func(i pipeline.StepInfo) { w.steps.WithLabelValues(i.Step).Observe(i.End.Sub(i.Begin).Seconds()) },
	}
}

// static returns the label of static pods: "true", or empty, as with the kubelet.
func static(pod *v1.Pod) string {
	if pod != nil && runtime.IsStatic(pod) {
		return "true"
	}
	return ""
}
