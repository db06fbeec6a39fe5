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
	c.duration = s.Histograms("cm.Hooks.Operation", "kubelet_cgroup_manager_duration_seconds", "How long one change of a cgroup took: create, update or destroy.", quick, "operation_type")
	c.repaired = s.Counter("cm.Hooks.Repaired", "cgroup_drift_repaired_total", "Cgroups in which somebody else had changed something.")
	c.kills = s.Counters("oom.Config.Handle", "kubeparts_oom_kills_total", "Processes that the kernel killed for memory: of the machine, or of one cgroup.", "scope")
}

// Cgroups returns the hooks of a cm.Manager.
func (m *Metrics) Cgroups() cm.Hooks {
	c := &m.cgroups
	return cm.Hooks{
		Operation: func(i cm.OperationInfo) { c.duration.WithLabelValues(i.Type).Observe(i.Duration.Seconds()) }, // cm-11
		Repaired:  func(cgroups.Name, []cgroups.Change) { c.repaired.Inc() },
	}
}

// OOMKill counts what an oom.Watcher tells: it is, or is called by, Config.Handle.
func (m *Metrics) OOMKill(k oom.Kill) {
	scope := "cgroup"
	if k.System() {
		scope = "machine"
	}
	m.cgroups.kills.WithLabelValues(scope).Add(float64(max(k.Count, 1)))
}
