package member

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/kube/node"
)

type nodeDeps struct {
	cluster   *stores.Cluster
	runtime   machine.PodRuntime
	backend   *machine.Backend
	declared  machine.DeclaredFeatures
	agent     *agent.Agent
	cgroups   machine.PodCgroups
	managers  *machine.ResourceManagers
	images    *machine.NodeImages
	volumes   *volumes.Volumes
	evictions *eviction.Manager
	port      int32
}

// newNode constructs the manager of the Node object and its lease.
func newNode(b stores.Base, d nodeDeps) (*node.Node, error) {
	addresses := node.AddressConfig{NodeName: b.Config.NodeName, NodeIPs: b.Config.Host.IPs}
	cloud := node.CloudProvider{External: b.Config.Cluster.ExternalCloudProvider, ProvidedNodeIP: providedIPs(b.Config.Host.IPs), ProviderID: b.Configuration.ProviderID}
	addresses.Cloud = cloud.External
	spec := node.Spec{Name: b.Config.NodeName, Labels: b.Config.Cluster.NodeLabels, Taints: b.Configuration.RegisterWithTaints, CloudProvider: cloud}
	if info := d.backend.Info(); info != nil {
		spec.OS, spec.Arch = info.OS, info.Arch
	}
	// Without a manager, or with one that keeps its state, the extended resources of the object
	// are those of this machine (rule dev-11).
	spec.KeepExtendedResources = d.managers == nil || !d.managers.Device.Fresh()
	facts := nodeFacts(b, d, addresses, cloud)
	cfg := node.Config{
		Spec: spec, Nodes: d.cluster.Conn.Heartbeats.CoreV1().Nodes(), Leases: d.cluster.Conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		NoRegistration: b.Configuration.RegisterNode != nil && !*b.Configuration.RegisterNode,
		Timing: node.Timing{
			UpdatePeriod:  b.Configuration.NodeStatusUpdateFrequency.Duration,
			ReportPeriod:  b.Configuration.NodeStatusReportFrequency.Duration,
			LeaseDuration: time.Duration(b.Configuration.NodeLeaseDurationSeconds) * time.Second,
		},
		Setters: []node.Setter{node.Report(facts)}, Record: b.Record, Logger: b.Logger,
		Observed: func(n *v1.Node) {
			d.cluster.Object.Observed(n)
			d.volumes.AttachChanged()
		},
		Connection: node.Connection{
			Unreachable: d.cluster.Conn.CloseAll,
			Recovered: func() {
				d.cluster.Pods.Retry()
				b.Queues.Statuses.Notify()
			},
		},
		Hooks: b.Metrics.API.Node(),
	}
	if h := d.agent.Health(); h != nil {
		cfg.Refresh = h.Check
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	return node.New(cfg)
}

// nodeFacts returns the function that reads the facts of the node status.
func nodeFacts(b stores.Base, d nodeDeps, addresses node.AddressConfig, cloud node.CloudProvider) func(context.Context) (node.Facts, error) {
	refresh := cached(factsAge, func(ctx context.Context) (struct{}, error) { return struct{}{}, d.backend.Refresh(ctx) })
	version := cached(factsAge, d.runtime.Version)
	features := cached(factsAge, d.runtime.Features)
	maxImages := int(stores.Deref(b.Configuration.NodeStatusMaxImages))
	images := d.images.ForNode(d.runtime, maxImages)
	machine := machineFacts(b, d)
	health := nodeHealth(b, d)
	return func(ctx context.Context) (node.Facts, error) {
		f := node.Facts{
			CloudProvider: cloud, KubeletPort: d.port, Declared: d.declared.Names, MaxImages: maxImages, NoEphemeralStorage: !stores.IsolatesStorage(b.Configuration),
		}
		var addressErr, imagesErr error
		_, backendErr := refresh(ctx)
		elsewhere := d.backend.Info()
		if elsewhere != nil && elsewhere.Addresses != nil {
			f.Addresses = elsewhere.Addresses
		} else if n := d.cluster.Object.Object(); !cloud.External || n == nil || len(n.Status.Addresses) == 0 {
			f.Addresses, addressErr = addresses.Addresses(ctx)
		}
		f.Machine = machine()
		info, infoErr := node.ReadInfo(os.DirFS("/")) // with an error it is partial
		if !b.UserNamespace.Gate {
			info.RunningInUserNamespace = nil
		}
		info.KubeletVersion = b.Config.Cluster.Version
		if elsewhere != nil {
			info.KernelVersion, info.OSImage = "", ""
			info.OperatingSystem, info.Architecture = cmp.Or(elsewhere.OS, info.OperatingSystem), cmp.Or(elsewhere.Arch, info.Architecture)
			_, has := elsewhere.Capacity[v1.ResourceEphemeralStorage]
			f.NoEphemeralStorage = !has
		}
		running, _ := version(ctx) // "" if the runtime does not respond
		info.ContainerRuntimeVersion = node.RuntimeVersion(d.runtime.Name, running)
		f.Info = &info
		f.Images, imagesErr = images(ctx)
		reported, featuresErr := features(ctx)
		if featuresErr == nil {
			f.Runtime = &reported
		}
		f.Pressure, f.Health, f.VolumesInUse = podwing.Pressure(d.evictions), health(), d.volumes.VolumesInUse()
		return f, errors.Join(backendErr, addressErr, infoErr, imagesErr, featuresErr)
	}
}

// providedIPs returns the value of the annotation with the configured addresses; "" if they
// only select a family.
func providedIPs(ips []net.IP) string {
	if len(ips) > 0 && ips[0].IsUnspecified() {
		return ""
	}
	var texts []string
	for _, ip := range ips {
		texts = append(texts, ip.String())
	}
	return strings.Join(texts, ",")
}

// machineFacts returns the function that returns the resources of the node status (rule
// cm-22); process IDs are no resource of pods.
func machineFacts(b stores.Base, d nodeDeps) func() *node.Machine {
	capacity := maps.Clone(d.cgroups.Total)
	delete(capacity, cm.ResourcePID)
	return func() *node.Machine {
		if info := d.backend.Info(); info != nil {
			m := &node.Machine{Capacity: info.Capacity, Allocatable: info.Allocatable}
			if _, limited := info.Capacity[v1.ResourcePods]; !limited {
				m.MaxPods = int64(stores.MaxPods(b.Config))
			}
			return m
		}
		m := &node.Machine{Capacity: capacity, Allocatable: d.cgroups.Allocatable, MaxPods: int64(stores.MaxPods(b.Config))}
		if d.managers != nil {
			m.Devices, m.HealthyDevices, m.RemovedDevices = d.managers.Device.Capacity()
		}
		return m
	}
}

// nodeHealth returns the function that reports the conditions of the node. Until the
// runtime was healthy for the first time, the health is unknown.
func nodeHealth(b stores.Base, d nodeDeps) func() node.Health {
	healthy := false // at any time
	return func() node.Health {
		h := node.Health{
			Checks:  []node.Check{{Name: "PLEG", Err: d.agent.PLEG().Healthy()}},
			Storage: d.cluster.StorageErr(), Shutdown: b.Shutdown.Err(), Warning: d.cgroups.Warning(),
		}
		if r := d.agent.Health(); r != nil { // else a runtime that lists its pods is healthy
			h.Runtime, h.Network = r.Runtime(), r.Network()
		}
		healthy = healthy || h.Runtime == nil && h.Checks[0].Err == nil && h.Network == nil
		h.Unknown = !healthy
		return h
	}
}
