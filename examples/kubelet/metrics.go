package main

import (
	"net/http"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/metrics"
	clustermetrics "github.com/kubeparts/kubeparts/kube/metrics/cluster"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/shutdown"
)

// counters count what happens, for Prometheus: each part gets its hooks from them.
type counters struct {
	*metrics.Metrics
	remote *remote.Metrics
	api    *clustermetrics.Metrics

	serverExpires func() time.Time // the serving certificate; nil: none is renewed
}

func newCounters(opts options) (*counters, error) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubeletVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := metrics.New(metrics.Config{
		NodeName: opts.nodeName, Version: version.Info{GitVersion: kubeletVersion, Major: major, Minor: minor},
	})
	if err != nil {
		return nil, err
	}
	c := &counters{Metrics: m}
	if c.remote, err = remote.New(m); err != nil {
		return nil, err
	}
	c.api, err = clustermetrics.New(m)
	return c, err
}

// metrics returns what answers scrapes, by path.
func (a *assembly) metrics(g ground, k knowledge, usage *stats.Collector) map[string]http.Handler {
	s := metrics.Sources{
		Wanted: shownPods{a.pods, k.statuses}.Pods, Mirrors: a.pods.loop.MirrorUIDs, Working: a.pods.workers.Counts, Held: k.changes.Pods,
		Resize: g.granted.State, Volumes: g.volumes.Totals,
		Summary: usage.Summary, Usage: usage.CPUAndMemory, Group: usage.Group,
		Machine: machineOf(g.rt.node), Root: os.DirFS("/"), Dirs: usage.Dirs, ClientExpires: a.cluster.certificateEnds, ServerExpires: a.count.servingEnds,
	}
	if groups := g.rt.node.groups; groups != nil {
		s.PodCgroup = a.podCgroup(groups)
	}
	return a.count.Handlers(s)
}

// machineOf is what the node has. What can't be read is not told.
func machineOf(n *podNode) metrics.Machine {
	root := os.DirFS("/")
	m := metrics.Machine{CPUs: int(n.capacity.Cpu().Value()), Memory: uint64(n.capacity.Memory().Value())}
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

// certificateEnds is when the certificate ends that the API server sees; never, where
// the agent does not look after it.
func (c *cluster) certificateEnds() time.Time {
	if c == nil || c.expires == nil {
		return time.Time{}
	}
	return c.expires()
}

// checks returns what /healthz asks, counted.
func (c *counters) checks(all ...statuspage.Check) []statuspage.Check {
	for i := range all {
		all[i].Check = c.Check("healthz", all[i].Name, all[i].Check)
	}
	return all
}

// servingEnds is when the certificate ends that those see who ask this node; never,
// where the agent does not look after it.
func (c *counters) servingEnds() time.Time {
	if c.serverExpires == nil {
		return time.Time{}
	}
	return c.serverExpires()
}

// The hooks that others need as well.

func (c *counters) runtime(synced func(cri.SyncInfo)) cri.Hooks {
	h := c.remote.Runtime()
	h.Synced = synced
	return h
}

func (c *counters) evictions(passed func(eviction.PassInfo), conditions func([]v1.NodeConditionType)) eviction.Hooks {
	h := c.Eviction()
	count := h.Passed
	h.Passed = func(i eviction.PassInfo) { count(i); passed(i) }
	h.Conditions = conditions
	return h
}

func (c *counters) departure(ended func(shutdown.EndedInfo)) shutdown.Hooks {
	h := c.Shutdown()
	h.Ended = ended
	return h
}

func (c *counters) devices(changed func(resource string)) device.Hooks {
	h := c.remote.Devices()
	h.Changed = changed
	return h
}

func (c *counters) imageGC(detected func(present []string, before time.Time)) imagegc.Hooks {
	h := c.ImageGC()
	h.Detected = detected
	return h
}

func (c *counters) watch(recovered func()) client.PodsHooks {
	h := c.api.Pods()
	h.Recovered = recovered
	return h
}

func (c *counters) node(renewed func(error)) node.Hooks {
	h := c.api.Node()
	count := h.Renewed
	h.Renewed = func(err error) { count(err); renewed(err) }
	return h
}
