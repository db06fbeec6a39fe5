package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type cgroupMetrics struct {
	duration *prometheus.HistogramVec
	repaired prometheus.Counter
	kills    *prometheus.CounterVec
}

func (c *cgroupMetrics) declare(s *family.Set) {
	c.duration = s.Histograms("cm.Hooks.Operation", "kubelet_cgroup_manager_duration_seconds", "Duration of cgroup operations: create, update or destroy.", quick, "operation_type")
	c.repaired = s.Counter("cm.Hooks.Repaired", "cgroup_drift_repaired_total", "Cgroups whose values were changed by others and restored.")
	c.kills = s.Counters("oom.Config.Handle", "kubeparts_oom_kills_total", "Processes that the kernel has killed because of memory, by scope: the machine, or a cgroup.", "scope")
}

// Cgroups returns the hooks of a cm.Manager.
func (m *Metrics) Cgroups() cm.Hooks {
	c := &m.cgroups
	return cm.Hooks{
		Operation: func(i cm.OperationInfo) { c.duration.WithLabelValues(i.Type).Observe(i.Duration.Seconds()) }, // rule cm-11
		Repaired:  func(cgroups.Name, []cgroups.Change) { c.repaired.Inc() },
	}
}

// OOMKill counts an OOM kill. It is an oom.Config.Handle, or is called by one.
func (m *Metrics) OOMKill(k oom.Kill) {
	scope := "cgroup"
	if k.System() {
		scope = "machine"
	}
	m.cgroups.kills.WithLabelValues(scope).Add(float64(max(k.Count, 1)))
}
