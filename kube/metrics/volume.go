package metrics

import (
	"strconv"

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
	v.steps = s.Histograms(operated, "storage_operation_duration_seconds", "Duration of one operation on a volume. migrated: by the CSI driver that replaces an in-tree plugin.", slow, "volume_plugin", "operation_name", "status", "migrated")
	v.totals = s.Histograms(operated, "volume_operation_total_seconds", "Duration from the request to mount or unmount a volume until it was done, including failed attempts and backoff.", slow, "plugin_name", "operation_name")
	v.forced = s.Counter(operated, "force_cleaned_failed_volume_operations_total", "Unknown volumes that were cleaned up.")
	v.forcedErrors = s.Counter(operated, "force_cleaned_failed_volume_operation_errors_total", "Unknown volumes that could not be cleaned up.")
	v.rebuilt = s.Counter(reconstructed, "reconstruct_volume_operations_total", "Volumes of an earlier process that were reconstructed.")
	v.rebuiltErrors = s.Counter(reconstructed, "reconstruct_volume_operations_errors_total", "Volumes of an earlier process that could not be reconstructed.")
	v.orphans = s.Gauge(collected, "kubelet_orphan_pod_cleaned_volumes", "Orphaned pod directories, in the last pass.")
	v.orphanErrors = s.Gauge(collected, "kubelet_orphan_pod_cleaned_volumes_errors", "Orphaned pod directories that could not be removed, in the last pass.")
}

// Volumes returns the hooks of a volume.Manager.
func (m *Metrics) Volumes() volume.Hooks {
	v := &m.volumes
	return volume.Hooks{
		Operated: func(i volume.OperationInfo) { // rule vol-81
			outcome := "success"
			if i.Err != nil {
				outcome = "fail-unknown"
			}
			operation := i.Operation
			if same := kubeletOperations[operation]; same != "" {
				operation = same
			}
			v.steps.WithLabelValues(i.Plugin, operation, outcome, strconv.FormatBool(i.Migrated)).Observe(i.Duration.Seconds())
			if i.Total > 0 {
				v.totals.WithLabelValues(i.Plugin, operation).Observe(i.Total.Seconds())
			}
			if i.Forced { // rule vol-35
				count(v.forced, v.forcedErrors, i.Err)
			}
		},
		Reconstructed: func(_ volume.Place, _ bool, err error) { count(v.rebuilt, v.rebuiltErrors, err) },
		Collected: func(orphans, failed int) { // rule vol-38
			v.orphans.Set(float64(orphans))
			v.orphanErrors.Set(float64(failed))
		},
	}
}

// kubeletOperations are the kubelet's names of operations that have another name in the
// volume manager.
var kubeletOperations = map[string]string{"volume_refresh": "volume_mount", "volume_unstage": "unmount_device"}

// count increments all and, if err is not nil, errors.
func count(all, errors prometheus.Counter, err error) {
	all.Inc()
	if err != nil {
		errors.Inc()
	}
}
