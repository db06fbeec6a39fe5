package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/volume"
)

type volumeMetrics struct {
	steps, totals          *prometheus.HistogramVec
	forced, forcedErrors   prometheus.Counter
	rebuilt, rebuiltErrors prometheus.Counter
	orphans, orphanErrors  prometheus.Gauge
}

func (v *volumeMetrics) declare(s *family.Set) {
	const operated, reconstructed, collected = "volume.Hooks.Operated", "volume.Hooks.Reconstructed", "volume.Hooks.Collected"
	slow := []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	v.steps = s.Histograms(operated, "storage_operation_duration_seconds", "How long one step with a volume took. Nothing is migrated: plugins in the tree there are none.", slow, "volume_plugin", "operation_name", "status", "migrated")
	v.totals = s.Histograms(operated, "volume_operation_total_seconds", "From when a volume was wanted, or no longer wanted, until it was so: with what failed before, and the waits.", slow, "plugin_name", "operation_name")
	v.forced = s.Counter(operated, "force_cleaned_failed_volume_operations_total", "Volumes that nobody knew, and that were removed from outside.")
	v.forcedErrors = s.Counter(operated, "force_cleaned_failed_volume_operation_errors_total", "Volumes that nobody knew, and that could not be removed from outside.")
	v.rebuilt = s.Counter(reconstructed, "reconstruct_volume_operations_total", "Volumes that an earlier agent has left.")
	v.rebuiltErrors = s.Counter(reconstructed, "reconstruct_volume_operations_errors_total", "Volumes that an earlier agent has left, and that nobody knows.")
	v.orphans = s.Gauge(collected, "kubelet_orphan_pod_cleaned_volumes", "Directories of pods that nobody wants, in the last round.")
	v.orphanErrors = s.Gauge(collected, "kubelet_orphan_pod_cleaned_volumes_errors", "Directories of pods that nobody wants, and that could not be removed, in the last round.")
}

// Volumes returns the hooks of a volume.Manager.
func (m *Metrics) Volumes() volume.Hooks {
	v := &m.volumes
	return volume.Hooks{
		Operated: func(i volume.OperationInfo) { // vol-81
			outcome := "success"
			if i.Err != nil {
				outcome = "fail-unknown"
			}
			operation := i.Operation
			if same := kubeletsOperations[operation]; same != "" {
				operation = same
			}
			v.steps.WithLabelValues(i.Plugin, operation, outcome, "false").Observe(i.Duration.Seconds())
			if i.Total > 0 {
				v.totals.WithLabelValues(i.Plugin, operation).Observe(i.Total.Seconds())
			}
			if i.Forced { // vol-35
				count(v.forced, v.forcedErrors, i.Err)
			}
		},
		Reconstructed: func(i volume.ReconstructInfo) { count(v.rebuilt, v.rebuiltErrors, i.Err) },
		Measured:      m.disks.measured,
		Collected: func(i volume.CollectInfo) { // vol-38
			v.orphans.Set(float64(i.Orphans))
			v.orphanErrors.Set(float64(i.Failed))
		},
	}
}

// kubeletsOperations are what a kubelet calls steps that the volume manager has another
// name for: it mounts again what is refreshed.
var kubeletsOperations = map[string]string{"volume_refresh": "volume_mount", "volume_unstage": "unmount_device"}

// count counts one of all, and one of those with an error if it has one.
func count(all, errors prometheus.Counter, err error) {
	all.Inc()
	if err != nil {
		errors.Inc()
	}
}
