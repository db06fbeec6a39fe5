package kubelet

import (
	"net/http"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/node"
)

type metricsDeps struct {
	agent      *agent.Agent
	allocation *allocation.Manager
	volumes    *volumes
	claims     *claims
	stats      *stats.Collector
	cgroups    podCgroups
	cluster    *cluster
	serving    serving
}

// newMetrics returns the handlers of metrics, by path.
func newMetrics(b base, d metricsDeps) map[string]http.Handler {
	never := func() time.Time { return time.Time{} }
	s := metrics.Sources{
		Pods: reportedPods{d.agent}, Runtime: d.agent.PLEG(), Allocation: d.allocation, Volumes: d.volumes, Stats: d.stats,
		Machine: machineOf(d.cgroups), Root: os.DirFS("/"), ClientExpires: never, ServerExpires: never,
	}
	if d.claims != nil {
		s.Claims = d.claims
	}
	if d.volumes.certs != nil {
		s.PodCertificates = d.volumes.certs
	}
	if d.cluster != nil && d.cluster.conn.expires != nil {
		s.ClientExpires = d.cluster.conn.expires
	}
	if d.serving.expires != nil {
		s.ServerExpires = d.serving.expires
	}
	if d.cgroups.groups != nil && config.Enabled(b.k, "MemoryQoS") {
		s.Cgroups = d.cgroups.groups
	}
	return b.metrics.Handlers(s)
}

// machineOf returns the facts of the machine that can be read.
func machineOf(n podCgroups) metrics.Machine {
	root := os.DirFS("/")
	m := metrics.Machine{CPUs: int(n.total.Cpu().Value()), Memory: uint64(n.total.Memory().Value())}
	if n.tree != nil {
		m.CgroupVersion = n.tree.Facts().Version
	}
	info, _ := node.ReadInfo(root)
	m.MachineID, m.SystemUUID, m.BootID = info.MachineID, info.SystemUUID, info.BootID
	if info.Swap != nil && info.Swap.Capacity != nil {
		m.Swap = uint64(*info.Swap.Capacity)
	}
	if machine, err := topology.Read(root); err == nil {
		cores, sockets := map[int]bool{}, map[int]bool{}
		for _, c := range machine.CPUs {
			cores[c.Core], sockets[c.Socket] = true, true
		}
		m.Cores, m.Sockets = len(cores), len(sockets)
	}
	return m
}
