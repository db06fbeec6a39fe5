package kubelet

import (
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
	"github.com/kubeparts/kubeparts/kube/node"
)

type nodeDeps struct {
	cluster   *cluster
	services  services
	runtime   podRuntime
	declared  declaredFeatures
	agent     *agent.Agent
	cgroups   podCgroups
	managers  *resourceManagers
	images    *nodeImages
	volumes   *volumes
	evictions *eviction.Manager
	port      int32
}

// newNode constructs the manager of the Node object and its lease.
func newNode(b base, d nodeDeps) (*node.Node, error) {
	addresses := node.AddressConfig{NodeName: b.cfg.NodeName, NodeIPs: b.cfg.Host.IPs}
	cloud := node.CloudProvider{External: b.cfg.Cluster.ExternalCloudProvider, ProvidedNodeIP: providedIPs(b.cfg.Host.IPs), ProviderID: b.k.ProviderID}
	addresses.Cloud = cloud.External
	spec := node.Spec{Name: b.cfg.NodeName, Labels: b.cfg.Cluster.NodeLabels, Taints: b.k.RegisterWithTaints, CloudProvider: cloud}
	// Without a manager, or with one that keeps its state, the extended resources of the object
	// are those of this machine (rule dev-11).
	spec.KeepExtendedResources = d.managers == nil || !d.managers.device.Fresh()
	facts := nodeFacts(b, d, addresses, cloud)
	cfg := node.Config{
		Spec: spec, Nodes: d.cluster.conn.Heartbeats.CoreV1().Nodes(), Leases: d.cluster.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		NoRegistration: b.k.RegisterNode != nil && !*b.k.RegisterNode,
		Timing: node.Timing{
			UpdatePeriod:  b.k.NodeStatusUpdateFrequency.Duration,
			ReportPeriod:  b.k.NodeStatusReportFrequency.Duration,
			LeaseDuration: time.Duration(b.k.NodeLeaseDurationSeconds) * time.Second,
		},
		Setters: []node.Setter{node.Report(facts)}, Refresh: d.agent.Health().Check, Record: b.record, Logger: b.logger,
		Observed: func(n *v1.Node) {
			d.cluster.object.observed(n)
			d.volumes.AttachChanged()
		},
		Connection: node.Connection{
			Unreachable: d.cluster.conn.closeAll,
			Recovered: func() {
				d.cluster.pods.Retry()
				b.queues.statuses.notify()
			},
		},
		Hooks: b.metrics.api.Node(),
	}
	if err := compose.Apply(b.cfg.Adjust, "Node", &cfg); err != nil {
		return nil, err
	}
	return node.New(cfg)
}

// nodeFacts returns the function that reads the facts of the node status.
func nodeFacts(b base, d nodeDeps, addresses node.AddressConfig, cloud node.CloudProvider) func(context.Context) (node.Facts, error) {
	version := cached(factsAge, func(ctx context.Context) (string, error) {
		v, err := d.services.Service.Version(ctx, "")
		return v.GetRuntimeVersion(), err
	})
	features := cached(factsAge, d.runtime.Features)
	maxImages := int(deref(b.k.NodeStatusMaxImages))
	images := d.images.forNode(d.services, maxImages)
	machine := machineFacts(b, d)
	health := nodeHealth(b, d)
	return func(ctx context.Context) (node.Facts, error) {
		f := node.Facts{
			CloudProvider: cloud, KubeletPort: d.port, Declared: d.declared.names, MaxImages: maxImages, NoEphemeralStorage: !isolatesStorage(b.k),
		}
		var addressErr, imagesErr error
		if n := d.cluster.object.object(); !cloud.External || n == nil || len(n.Status.Addresses) == 0 {
			f.Addresses, addressErr = addresses.Addresses(ctx)
		}
		f.Machine = machine()
		info, infoErr := node.ReadInfo(os.DirFS("/")) // with an error it is partial
		if !b.userNamespace.gate {
			info.RunningInUserNamespace = nil
		}
		info.KubeletVersion = b.cfg.Cluster.Version
		running, _ := version(ctx) // "" if the runtime does not respond
		info.ContainerRuntimeVersion = node.RuntimeVersion(d.services.Name, running)
		f.Info = &info
		f.Images, imagesErr = images(ctx)
		reported, featuresErr := features(ctx)
		if featuresErr == nil {
			f.Runtime = &reported
		}
		f.Pressure, f.Health, f.VolumesInUse = pressure(d.evictions), health(), d.volumes.VolumesInUse()
		return f, errors.Join(addressErr, infoErr, imagesErr, featuresErr)
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
func machineFacts(b base, d nodeDeps) func() *node.Machine {
	capacity := maps.Clone(d.cgroups.total)
	delete(capacity, cm.ResourcePID)
	return func() *node.Machine {
		m := &node.Machine{Capacity: capacity, Allocatable: d.cgroups.allocatable, MaxPods: int64(maxPods(b.cfg))}
		if d.managers != nil {
			m.Devices, m.HealthyDevices, m.RemovedDevices = d.managers.device.Capacity()
		}
		return m
	}
}

// nodeHealth returns the function that reports the conditions of the node. Until the
// runtime was healthy for the first time, the health is unknown.
func nodeHealth(b base, d nodeDeps) func() node.Health {
	healthy := false // at any time
	return func() node.Health {
		h := node.Health{
			Runtime: d.agent.Health().Runtime(), Network: d.agent.Health().Network(), Checks: []node.Check{{Name: "PLEG", Err: d.agent.PLEG().Healthy()}},
			Storage: d.cluster.storageErr(), Shutdown: b.shutdown.Err(), Warning: d.cgroups.warning(),
		}
		healthy = healthy || h.Runtime == nil && h.Checks[0].Err == nil && h.Network == nil
		h.Unknown = !healthy
		return h
	}
}
