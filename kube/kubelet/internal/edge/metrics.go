package edge

import (
	"net/http"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
	"github.com/kubeparts/kubeparts/kube/node"
)

type metricsDeps struct {
	agent      *agent.Agent
	allocation *allocation.Manager
	volumes    *volumes.Volumes
	managers   *machine.ResourceManagers
	claims     *volumes.Claims
	stats      *stats.Collector
	cgroups    machine.PodCgroups
	cluster    *stores.Cluster
	serving    serving
	runtime    remote.PodMetricsRuntime // nil: not a CRI runtime
}

// podMetricsGate is the feature gate for metrics of pods that the runtime computes.
const podMetricsGate = "PodAndContainerStatsFromCRI"

// newMetrics returns the handlers of metrics, by path.
func newMetrics(b stores.Base, d metricsDeps) map[string]http.Handler {
	never := func() time.Time { return time.Time{} }
	s := metrics.Sources{
		Pods: reportedPods{d.agent}, Runtime: d.agent.PLEG(), Allocation: d.allocation, Volumes: d.volumes, Stats: d.stats,
		Machine: machineOf(d.cgroups), Root: os.DirFS("/"), ClientExpires: never, ServerExpires: never,
	}
	if d.managers != nil {
		s.Devices = d.managers.Device
	}
	if d.claims != nil {
		s.Claims = d.claims
	}
	if d.volumes.Certs != nil {
		s.PodCertificates = d.volumes.Certs
	}
	if d.cluster != nil && d.cluster.Conn.Expires != nil {
		s.ClientExpires = d.cluster.Conn.Expires
	}
	if d.serving.Expires != nil {
		s.ServerExpires = d.serving.Expires
	}
	if d.cgroups.Groups != nil && config.Enabled(b.Configuration, "MemoryQoS") {
		s.Cgroups = d.cgroups.Groups
	}
	if d.runtime != nil && config.Enabled(b.Configuration, podMetricsGate) {
		s.PodMetrics = remote.NewPodMetrics(d.runtime)
	}
	return b.Metrics.Handlers(s)
}

// machineOf returns the facts of the machine that can be read.
func machineOf(n machine.PodCgroups) metrics.Machine {
	root := os.DirFS("/")
	m := metrics.Machine{CPUs: int(n.Total.Cpu().Value()), Memory: uint64(n.Total.Memory().Value())}
	if n.Tree != nil {
		m.CgroupVersion = n.Tree.Facts().Version
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
