package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

// usageMetrics are the metrics of /metrics/resource (rule st-16).
type usageMetrics struct {
	node, pod, container used
	started, swapLimit   *prometheus.Desc
	scrapeError          *prometheus.Desc
}

// used are the metrics of a node, a pod or a container.
type used struct{ cpu, memory, swap *prometheus.Desc }

func (u *used) declare(s *family.Set, of string, labels ...string) {
	u.cpu = s.Desc("Sources.Stats.CPUAndMemory", of+"_cpu_usage_seconds_total", "counter", "CPU time used, in core-seconds.", labels...)
	u.memory = s.Desc("Sources.Stats.CPUAndMemory", of+"_memory_working_set_bytes", "gauge", "Memory in use that cannot be reclaimed.", labels...)
	u.swap = s.Desc("Sources.Stats.CPUAndMemory", of+"_swap_usage_bytes", "gauge", "Swap in use.", labels...)
}

func (u *usageMetrics) declare(s *family.Set) {
	u.node.declare(s, "node")
	u.pod.declare(s, "pod", "pod", "namespace")
	u.container.declare(s, "container", "container", "pod", "namespace")
	u.started = s.Desc("Sources.Stats.CPUAndMemory", "container_start_time_seconds", "gauge", "Start time of the container, in Unix time.", "container", "pod", "namespace")
	u.swapLimit = s.Desc("Sources.Stats.CPUAndMemory", "container_swap_limit_bytes", "gauge", "Swap limit of the container.", "container", "pod", "namespace")
	u.scrapeError = s.Desc("Sources.Stats.CPUAndMemory", "resource_scrape_error", "gauge", "1 if not all resource metrics could be read.")
}

// send sends the usage, with the times of measurement.
func (u *used) send(out sink, cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, swap *statsapi.SwapStats, labels ...string) {
	if cpu != nil && cpu.UsageCoreNanoSeconds != nil {
		out.put(u.cpu, prometheus.CounterValue, cpu.Time.Time, float64(*cpu.UsageCoreNanoSeconds)/1e9, labels)
	}
	if memory != nil && memory.WorkingSetBytes != nil {
		out.put(u.memory, prometheus.GaugeValue, memory.Time.Time, float64(*memory.WorkingSetBytes), labels)
	}
	if swap != nil && swap.SwapUsageBytes != nil {
		out.put(u.swap, prometheus.GaugeValue, swap.Time.Time, float64(*swap.SwapUsageBytes), labels)
	}
}

func (m *Metrics) collectResource(ctx context.Context, s *Sources, out sink) {
	var summary *statsapi.Summary
	var err error
	if s.Stats != nil {
		summary, err = s.Stats.CPUAndMemory(ctx)
	}
	m.sendResource(summary, err, s.Pods, out)
}

// sendResource sends usage; pods may be nil.
func (m *Metrics) sendResource(summary *statsapi.Summary, err error, pods Pods, out sink) {
	u := &m.usage
	out.gauge(u.scrapeError, number(err != nil))
	if summary == nil {
		return
	}
	n := &summary.Node
	u.node.send(out, n.CPU, n.Memory, n.Swap)
	for _, p := range currentPods(summary.Pods, pods) {
		u.pod.send(out, p.CPU, p.Memory, p.Swap, p.PodRef.Name, p.PodRef.Namespace)
		for j := range p.Containers {
			c := &p.Containers[j]
			labels := []string{c.Name, p.PodRef.Name, p.PodRef.Namespace}
			u.container.send(out, c.CPU, c.Memory, c.Swap, labels...)
			if known(c.StartTime) { // without a time, since it does not change
				out.gauge(u.started, seconds(c.StartTime.Time), labels...)
			}
			if w := c.Swap; w != nil && w.SwapAvailableBytes != nil && w.SwapUsageBytes != nil {
				out.gauge(u.swapLimit, float64(*w.SwapAvailableBytes+*w.SwapUsageBytes), labels...)
			}
		}
	}
}

func known(t metav1.Time) bool { return !t.IsZero() && t.Unix() > 0 }
