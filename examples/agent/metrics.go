package main

import (
	"net/http"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

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
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/status"
)

// counters count what happens, for Prometheus: each part gets its hooks from them.
type counters struct {
	*metrics.Metrics
	remote *remote.Metrics
	api    *clustermetrics.Metrics
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

// A metricsOf is what scrapes are answered from.
type metricsOf struct {
	ground
	knowledge
	work
	usage *stats.Collector
}

// metrics returns what answers scrapes, by path.
func (a *assembly) metrics(of metricsOf) map[string]http.Handler {
	groups := of.rt.node.groups
	s := metrics.Sources{
		Wanted: a.shown(of.statuses), Mirrors: a.pods.loop.MirrorUIDs, Working: a.pods.workers.Counts, Held: of.changes.Pods,
		Resize: of.granted.State, Volumes: of.volumes.Totals,
		Summary: of.usage.Summary, Usage: of.usage.CPUAndMemory, Group: of.usage.Group,
		Machine: machineOf(of.rt.node), ClientExpires: a.cluster.certificateEnds,
	}
	if groups != nil {
		s.PodCgroup = a.podCgroup(groups)
	}
	return a.count.Handlers(s)
}

// scrapePages are the same for the debug listener.
func scrapePages(handlers map[string]http.Handler) (all []page) {
	for path, h := range handlers {
		all = append(all, page{path, h.ServeHTTP})
	}
	return all
}

// shown returns the pods that are wanted, with what is said of them.
func (a *assembly) shown(statuses *status.Manager) func() []*v1.Pod {
	return func() []*v1.Pod {
		pods := a.pods.loop.Pods()
		for i, pod := range pods {
			if s, ok := statuses.Status(pod.UID); ok {
				shown := *pod
				shown.Status = s
				pods[i] = &shown
			}
		}
		return pods
	}
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
func (c *counters) checks(all ...check) []check {
	for i := range all {
		all[i].ask = c.Check("healthz", all[i].name, all[i].ask)
	}
	return all
}

// The hooks that others need as well.

func (c *counters) pulls() images.Config { return images.Config{Hooks: c.remote.Images()} }

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
