package metrics

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// stateMetrics are the metrics that are read at a scrape.
type stateMetrics struct {
	runningPods, runningContainers    *prometheus.Desc
	desired, active, mirrors, working *prometheus.Desc
	ephemeral, pending, inProgress    *prometheus.Desc
	volumes, claims, certificates     *prometheus.Desc
	devices                           *prometheus.Desc
	memoryMin, memoryLow              *prometheus.Desc
	cgroupVersion                     *prometheus.Desc
	serverTTL, clientTTL              *prometheus.Desc
}

func (d *stateMetrics) declare(s *family.Set) {
	gauge := func(from, name, help string, labels ...string) *prometheus.Desc {
		return s.Desc("Sources."+from, name, "gauge", help, labels...)
	}
	d.runningPods = gauge("Runtime", "kubelet_running_pods", "Pods with a ready sandbox.")
	d.runningContainers = gauge("Runtime", "kubelet_running_containers", "Containers of the runtime, by state.", "container_state")
	d.desired = gauge("Pods", "kubelet_desired_pods", "Desired pods.", "static")
	d.active = gauge("Pods", "kubelet_active_pods", "Desired pods that have not terminated.", "static")
	d.ephemeral = gauge("Pods", "kubelet_managed_ephemeral_containers", "Ephemeral containers of desired pods.")
	d.mirrors = gauge("Pods", "kubelet_mirror_pods", "Mirror pods of static pods.")
	d.working = gauge("Pods", "kubelet_working_pods", "Pod workers, by lifecycle, whether the pod is desired, and static.", "lifecycle", "config", "static")
	d.pending = gauge("Allocation", "kubelet_pod_pending_resizes", "Pending resizes, by reason and by priority of the pod.", "reason", "priority_bucket")
	d.inProgress = gauge("Allocation", "kubelet_pod_in_progress_resizes", "Allocated resizes that are not actuated yet.")
	d.volumes = gauge("Volumes", "volume_manager_total_volumes", "Desired and mounted volumes.", "plugin_name", "state")
	d.devices = gauge("Devices", "kubelet_device_plugin_devices", "Devices of plugins, by resource and health.", "resource_name", "health_state")
	d.claims = gauge("Claims", "dra_resource_claims_in_use", "Prepared resource claims by driver; <any> counts each once.", "driver_name")
	d.certificates = gauge("PodCertificates", "kubelet_podcertificate_states", "podCertificate sources of volumes, by signer and state.", "signer_name", "state")
	d.memoryMin = gauge("Cgroups", "kubelet_memory_qos_node_memory_min_bytes", "Requested memory of Guaranteed pods, which the kernel does not reclaim (memory.min).")
	d.memoryLow = gauge("Cgroups", "kubelet_memory_qos_node_memory_low_bytes", "Requested memory of Burstable pods, which the kernel reclaims last (memory.low).")
	d.cgroupVersion = gauge("Machine", "kubelet_cgroup_version", "Version of the cgroup hierarchy of the machine.")
	d.serverTTL = gauge("ServerExpires", "kubelet_certificate_manager_server_ttl_seconds", "Time until the serving certificate expires; +Inf if there is none.")
	d.clientTTL = gauge("ClientExpires", "kubelet_certificate_manager_client_ttl_seconds", "Time until the client certificate expires; +Inf if there is none.")
}

func (m *Metrics) collectState(ctx context.Context, s *Sources, out sink) {
	d := &m.state
	if s.Runtime != nil {
		d.runtimePods(s.Runtime.Pods(), out)
	}
	if s.Pods != nil {
		d.desiredPods(s, out)
		d.podWorkers(s.Pods.States(), out)
		exist := 0
		for _, mirror := range s.Pods.MirrorUIDs() {
			if mirror != "" {
				exist++
			}
		}
		out.gauge(d.mirrors, float64(exist))
	}
	if s.Volumes != nil { // rule vol-35
		desired, actual := s.Volumes.VolumeCounts()
		for plugin, n := range desired {
			out.gauge(d.volumes, float64(n), plugin, "desired_state_of_world")
			out.gauge(d.volumes, float64(actual[plugin]), plugin, "actual_state_of_world")
		}
	}
	if s.Devices != nil {
		healthy, unhealthy := s.Devices.DeviceCounts()
		for resource, n := range healthy {
			out.gauge(d.devices, float64(n), resource, "healthy")
			out.gauge(d.devices, float64(unhealthy[resource]), resource, "unhealthy")
		}
	}
	if s.Claims != nil {
		all, byDriver := s.Claims.InUse()
		out.gauge(d.claims, float64(all), "<any>")
		for driver, n := range byDriver {
			out.gauge(d.claims, float64(n), driver)
		}
	}
	if s.PodCertificates != nil {
		for _, c := range s.PodCertificates.Counts() {
			out.gauge(d.certificates, float64(c.Sources), c.Signer, c.State)
		}
	}
	if s.Cgroups != nil {
		guaranteed, burstable := s.Cgroups.ProtectedMemory()
		out.gauge(d.memoryMin, float64(guaranteed))
		out.gauge(d.memoryLow, float64(burstable))
	}
	if s.Machine.CgroupVersion != 0 {
		out.gauge(d.cgroupVersion, float64(s.Machine.CgroupVersion))
	}
	for desc, expires := range map[*prometheus.Desc]func() time.Time{d.serverTTL: s.ServerExpires, d.clientTTL: s.ClientExpires} {
		if expires != nil {
			out.gauge(desc, remaining(expires()))
		}
	}
	m.collectDisks(ctx, s, out)
}

func (d *stateMetrics) runtimePods(pods []*runtime.Pod, out sink) {
	ready, states := 0, map[runtime.ContainerState]int{}
	for _, p := range pods {
		if len(p.Sandboxes) > 0 && p.Sandboxes[0].State == runtime.SandboxReady {
			ready++
		}
		for i := range p.Containers {
			states[p.Containers[i].State]++
		}
	}
	out.gauge(d.runningPods, float64(ready))
	for _, state := range []runtime.ContainerState{runtime.ContainerCreated, runtime.ContainerRunning, runtime.ContainerExited, runtime.ContainerUnknown} {
		out.gauge(d.runningContainers, float64(states[state]), state.String())
	}
}

func (d *stateMetrics) desiredPods(s *Sources, out sink) {
	var desired, active [2]int // by static
	var ephemeral, resizing int
	pending := map[[2]string]int{} // by reason and priority
	for _, pod := range s.Pods.Pods() {
		kind := 0
		if runtime.IsStatic(pod) {
			kind = 1
		}
		desired[kind]++
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			active[kind]++
		}
		ephemeral += len(pod.Spec.EphemeralContainers)
		if s.Allocation != nil {
			state := s.Allocation.ResizeState(pod.UID)
			if state.PendingReason != "" {
				pending[[2]string{strings.ToLower(state.PendingReason), priorityBucket(pod)}]++
			}
			if state.InProgress {
				resizing++
			}
		}
	}
	for kind, label := range []string{"", "true"} {
		out.gauge(d.desired, float64(desired[kind]), label)
		out.gauge(d.active, float64(active[kind]), label)
	}
	out.gauge(d.ephemeral, float64(ephemeral))
	if s.Allocation != nil {
		for labels, n := range pending {
			out.gauge(d.pending, float64(n), labels[:]...)
		}
		out.gauge(d.inProgress, float64(resizing))
	}
}

// podWorkers sends the number of pod workers by lifecycle (rule met-1). The kubelet has
// fewer states.
func (d *stateMetrics) podWorkers(pods []podworker.PodState, out sink) {
	type key struct{ lifecycle, config, static string }
	sums := map[key]int{}
	for _, p := range pods {
		k := key{"sync", "desired", static(p.Pod)}
		switch {
		case p.State == podworker.Stopping || p.State == podworker.Terminating:
			k.lifecycle = "terminating"
		case p.State >= podworker.Cleaning:
			k.lifecycle = "terminated"
		}
		switch {
		case p.Pod == nil:
			k.config, k.static = "runtime_only", "unknown"
		case p.Removed:
			k.config = "orphan"
		}
		sums[k]++
	}
	for k, n := range sums {
		out.gauge(d.working, float64(n), k.lifecycle, k.config, k.static)
	}
}

// remaining returns the seconds until a time; +Inf for the zero time.
func remaining(until time.Time) float64 {
	if until.IsZero() {
		return math.Inf(1)
	}
	return math.Trunc(time.Until(until).Seconds())
}
