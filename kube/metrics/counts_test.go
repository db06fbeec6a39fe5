package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// The metrics that the hooks of each component produce, by the rules that name a
// metric.
func TestMetricsOfHooks(t *testing.T) {
	w := newWorld(t).known().live(t)
	for name, c := range map[string]struct {
		path string
		want []string
	}{
		"prober_probe_total": { // prober-26
			metrics.ProbesPath, []string{
				`prober_probe_total{container="nginx",namespace="prod",pod="web",pod_uid="u1",probe_type="Liveness",result="failed"} 1`,
				`prober_probe_total{container="nginx",namespace="prod",pod="web",pod_uid="u1",probe_type="Liveness",result="successful"} 1`,
			},
		},
		"prober_probe_duration_seconds_count": { // prober-27, prober-77
			metrics.ProbesPath, []string{`prober_probe_duration_seconds_count{container="nginx",namespace="prod",pod="web",probe_type="Liveness"} 2`},
		},
		"kubelet_evictions": { // ev-29
			metrics.Path, []string{`kubelet_evictions{eviction_signal="memory.available"} 1`},
		},
		"kubelet_eviction_stats_age_seconds_sum": { // ev-29
			metrics.Path, []string{`kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 1`},
		},
		"kubelet_preemptions":                   {metrics.Path, []string{`kubelet_preemptions{preemption_signal="cpu"} 1`}},                                      // ev-62
		"kubelet_image_garbage_collected_total": {metrics.Path, []string{`kubelet_image_garbage_collected_total{reason="space"} 1`}},                             // ig-17
		"reconstruct_volume_operations_total":   {metrics.Path, []string{"reconstruct_volume_operations_total 1"}},                                               // vol-35
		"kubelet_orphan_pod_cleaned_volumes":    {metrics.Path, []string{"kubelet_orphan_pod_cleaned_volumes 3"}},                                                // vol-38
		"kubelet_volume_stats_used_bytes":       {metrics.Path, []string{`kubelet_volume_stats_used_bytes{namespace="prod",persistentvolumeclaim="claim"} 400`}}, // vol-80
		"volume_manager_total_volumes": { // vol-35
			metrics.Path, []string{
				`volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="actual_state_of_world"} 2`,
				`volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="desired_state_of_world"} 3`,
			},
		},
		"storage_operation_duration_seconds_count": { // vol-81
			metrics.Path, []string{
				`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/secret"} 1`,
				`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_unmount",status="fail-unknown",volume_plugin="kubernetes.io/csi"} 1`,
			},
		},
		"dra_operations_duration_seconds_count": { // dra-15
			metrics.Path, []string{`dra_operations_duration_seconds_count{is_error="true",operation_name="PrepareResources"} 1`},
		},
		"dra_resource_claims_in_use": { // dra-15
			metrics.Path, []string{`dra_resource_claims_in_use{driver_name="<any>"} 2`, `dra_resource_claims_in_use{driver_name="gpu.example.com"} 2`},
		},
		"dra_node_unprepare_skips_total": { // dra-15
			metrics.Path, []string{`dra_node_unprepare_skips_total{driver_name="gpu.example.com"} 1`},
		},
		"kubelet_cgroup_manager_duration_seconds_count": { // cm-11
			metrics.Path, []string{`kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 1`},
		},
		"kubelet_memory_qos_node_memory_min_bytes":   {metrics.Path, []string{"kubelet_memory_qos_node_memory_min_bytes 1.073741824e+09"}},
		"kubelet_memory_qos_node_memory_low_bytes":   {metrics.Path, []string{"kubelet_memory_qos_node_memory_low_bytes 1.048576e+06"}},
		"kubelet_cgroup_version":                     {metrics.Path, []string{"kubelet_cgroup_version 2"}},                   // cm-11
		"kubelet_cpu_manager_pinning_errors_total":   {metrics.Path, []string{"kubelet_cpu_manager_pinning_errors_total 1"}}, // cpu-10
		"kubelet_cpu_manager_pinning_requests_total": {metrics.Path, []string{"kubelet_cpu_manager_pinning_requests_total 1"}},
		"kubelet_resource_manager_allocations_total": {metrics.Path, []string{
			`kubelet_resource_manager_allocations_total{resource_name="cpu",source="pod"} 1`,
			`kubelet_resource_manager_allocations_total{resource_name="memory",source="node"} 1`,
		}},
		"kubelet_resource_manager_allocation_errors_total": {metrics.Path, []string{`kubelet_resource_manager_allocation_errors_total{resource_name="cpu",source="node"} 1`}},
		"kubelet_resource_manager_container_assignments_total": {metrics.Path, []string{
			`kubelet_resource_manager_container_assignments_total{assignment_type="node_exclusive",resource_name="memory"} 1`,
			`kubelet_resource_manager_container_assignments_total{assignment_type="pod_shared",resource_name="cpu"} 1`,
		}},
		"kubelet_topology_manager_admission_duration_ms_sum":      {metrics.Path, []string{"kubelet_topology_manager_admission_duration_ms_sum 1000"}},                // top-7
		"kubelet_device_plugin_registration_total":                {metrics.Path, []string{`kubelet_device_plugin_registration_total{resource_name="vendor/gpu"} 1`}}, // dev-13
		"kubelet_graceful_shutdown_start_time_seconds":            {metrics.Path, []string{"kubelet_graceful_shutdown_start_time_seconds 1.70000000025e+09"}},         // sh-11
		"kubelet_graceful_shutdown_end_time_seconds":              {metrics.Path, []string{"kubelet_graceful_shutdown_end_time_seconds 0"}},                           // sh-11
		"kubelet_node_startup_post_registration_duration_seconds": {metrics.Path, []string{"kubelet_node_startup_post_registration_duration_seconds 2"}},              // ns-21
		"kubelet_http_requests_total": { // sv-12
			metrics.Path, []string{`kubelet_http_requests_total{long_running="false",method="GET",path="pods",server_type="readwrite"} 1`},
		},
		"kubelet_http_inflight_requests": { // sv-12
			metrics.Path, []string{`kubelet_http_inflight_requests{long_running="false",method="GET",path="pods",server_type="readwrite"} 0`},
		},
		"kubelet_terminated_containers_total": { // st-58
			metrics.Path, []string{`kubelet_terminated_containers_total{container_type="container",exit_code="137",reason="OOMKilled"} 1`},
		},
		"kubelet_pod_status_sync_duration_seconds_sum": {metrics.Path, []string{"kubelet_pod_status_sync_duration_seconds_sum 1"}}, // st-69
		"kubelet_runtime_operations_errors_total": { // rt-152
			metrics.Path, []string{`kubelet_runtime_operations_errors_total{operation_type="list_containers"} 1`},
		},
		"kubelet_started_containers_total": { // without the postponed one
			metrics.Path, []string{
				`kubelet_started_containers_total{container_type="container"} 1`, `kubelet_started_containers_total{container_type="ephemeral_container"} 1`,
				`kubelet_started_containers_total{container_type="init_container"} 1`,
			},
		},
		"kubelet_started_containers_errors_total":   {metrics.Path, []string{`kubelet_started_containers_errors_total{code="ErrImagePull",container_type="init_container"} 1`}},
		"kubelet_image_pull_duration_seconds_count": {metrics.Path, []string{`kubelet_image_pull_duration_seconds_count{image_size_in_bytes="10MB-100MB"} 1`}},
		"kubelet_working_pods": { // hk-5, met-1
			metrics.Path, []string{
				`kubelet_working_pods{config="desired",lifecycle="sync",static=""} 3`, `kubelet_working_pods{config="orphan",lifecycle="terminating",static="true"} 1`,
				`kubelet_working_pods{config="runtime_only",lifecycle="terminated",static="unknown"} 1`,
			},
		},
		"kubelet_running_containers": {
			metrics.Path, []string{
				`kubelet_running_containers{container_state="created"} 0`, `kubelet_running_containers{container_state="exited"} 1`,
				`kubelet_running_containers{container_state="running"} 1`, `kubelet_running_containers{container_state="unknown"} 0`,
			},
		},
		"kubelet_sync_result_errors_total": { // without the postponed one
			metrics.Path, []string{`kubelet_sync_result_errors_total{action="CreatePodSandbox"} 1`, `kubelet_sync_result_errors_total{action="StartContainer"} 1`},
		},
		"kubelet_pod_worker_errors_total": {metrics.Path, []string{`kubelet_pod_worker_errors_total{operation_type="terminating"} 1`}},
		"kubelet_device_plugin_devices": {
			metrics.Path, []string{
				`kubelet_device_plugin_devices{health_state="healthy",resource_name="vendor/gpu"} 3`,
				`kubelet_device_plugin_devices{health_state="unhealthy",resource_name="vendor/gpu"} 1`,
			},
		},
		"kubelet_mirror_pods":         {metrics.Path, []string{"kubelet_mirror_pods 1"}},
		"kubelet_pod_pending_resizes": {metrics.Path, []string{`kubelet_pod_pending_resizes{priority_bucket="normal",reason="deferred"} 1`}},
		"kubelet_pod_deferred_resize_duration_seconds_count": {metrics.Path, []string{
			`kubelet_pod_deferred_resize_duration_seconds_count{priority_bucket="normal",resolution="accepted"} 1`,
			`kubelet_pod_deferred_resize_duration_seconds_count{priority_bucket="normal",resolution="reverted"} 1`,
			`kubelet_pod_deferred_resize_duration_seconds_count{priority_bucket="normal",resolution="terminated"} 1`,
		}},
		"kubelet_pod_infeasible_resizes_total":           {metrics.Path, []string{`kubelet_pod_infeasible_resizes_total{reason_detail="insufficient_node_allocatable"} 1`}},
		"kubelet_certificate_manager_client_ttl_seconds": {metrics.Path, []string{"kubelet_certificate_manager_client_ttl_seconds +Inf"}},
		"kubernetes_healthcheck": { // st-18
			metrics.SLIsPath, []string{`kubernetes_healthcheck{name="pleg",type="healthz"} 1`, `kubernetes_healthcheck{name="runtime",type="healthz"} 0`},
		},
		"kubernetes_healthchecks_total": { // st-18
			metrics.SLIsPath, []string{
				`kubernetes_healthchecks_total{name="pleg",status="error",type="healthz"} 0`, `kubernetes_healthchecks_total{name="pleg",status="success",type="healthz"} 1`,
				`kubernetes_healthchecks_total{name="runtime",status="error",type="healthz"} 1`, `kubernetes_healthchecks_total{name="runtime",status="success",type="healthz"} 0`,
			},
		},
	} {
		assert.Equal(t, c.want, w.lines(t, c.path, name), name)
	}
}

// prober-9
func TestTheSeriesOfAProbeAreRemovedWithIt(t *testing.T) {
	w := newWorld(t)
	pod, other := web(), web()
	other.UID = "u2"
	for _, of := range []*v1.Pod{pod, other} {
		for _, kind := range []prober.Kind{prober.Liveness, prober.Readiness} {
			w.Prober().Ran(prober.AttemptInfo{Pod: of, Container: "nginx", Kind: kind, Result: runtime.ProbeSuccess, Duration: time.Second})
		}
	}
	w.Prober().Removed(pod, "nginx", prober.Liveness)
	assert.Len(t, w.lines(t, metrics.ProbesPath, "prober_probe_total"), 3)
	w.Prober().Removed(pod, "nginx", prober.Readiness)
	w.Prober().Removed(other, "nginx", prober.Readiness)
	w.Prober().Removed(other, "nginx", prober.Liveness)
	assert.Empty(t, w.lines(t, metrics.ProbesPath, "prober_probe_total"))
	assert.Empty(t, w.lines(t, metrics.ProbesPath, "prober_probe_duration_seconds_count"))
}

// adm-15
func TestReasonsOfRejectedPodsAreBounded(t *testing.T) {
	w := newWorld(t)
	for _, reason := range []string{"OutOfcpu", "NodeAffinity", "OutOfvendor.com/gpu", "OutOfelse", "made up", ""} {
		w.Pipeline().Rejected(web(), runtime.Rejection{Reason: reason})
	}
	assert.Equal(t, []string{
		`kubelet_admission_rejections_total{reason="NodeAffinity"} 1`, `kubelet_admission_rejections_total{reason="Other"} 2`,
		`kubelet_admission_rejections_total{reason="OutOfExtendedResources"} 2`, `kubelet_admission_rejections_total{reason="OutOfcpu"} 1`,
	}, w.lines(t, metrics.Path, "kubelet_admission_rejections_total"))
}

// A pod that only waits for the end of a back-off, or whose sync was canceled, has not failed.
func TestFailedSyncsAreCountedWithoutBackOffs(t *testing.T) {
	backOff := runtime.Action{Kind: runtime.StartContainer, Target: "a", Err: errBroken, Reason: "CrashLoopBackOff"}
	pull := runtime.Action{Kind: runtime.StartContainer, Target: "b", Err: errBroken, Reason: "ImagePullBackOff"}
	failed := runtime.Action{Kind: runtime.StartContainer, Target: "c", Err: errBroken, Reason: "RunContainerError"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                   {nil, false},
		"another error":          {errBroken, true},
		"a wrapped error":        {fmt.Errorf("pipeline: %w", errBroken), true},
		"canceled":               {errors.Join(context.Canceled, errBroken), false},
		"back-offs":              {runtime.SyncResult{Actions: []runtime.Action{backOff, pull}}.Err(), false},
		"wrapped back-offs":      {fmt.Errorf("pipeline: %w", runtime.SyncResult{Actions: []runtime.Action{backOff}}.Err()), false},
		"a back-off and another": {runtime.SyncResult{Actions: []runtime.Action{backOff, failed}}.Err(), true},
	} {
		w := newWorld(t)
		w.PodWorker().Synced(podworker.SyncInfo{Pod: web(), State: podworker.Syncing, Err: tc.err})
		var want []string
		if tc.want {
			want = []string{`kubelet_pod_worker_errors_total{operation_type="sync"} 1`}
		}
		assert.Equal(t, want, w.lines(t, metrics.Path, "kubelet_pod_worker_errors_total"), name)
	}
}
