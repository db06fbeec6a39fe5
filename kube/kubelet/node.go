package kubelet

import (
	"context"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/volume"
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
	shutdown  *shutdown.Manager
	port      int32
	link      *link[volume.Manager]
}

// newNode constructs the manager of the Node object and its lease.
func newNode(b base, d nodeDeps) (*node.Node, error) {
	addresses := node.AddressConfig{NodeName: b.cfg.NodeName, NodeIPs: b.cfg.Host.IPs}
	cloud := node.CloudProvider{External: b.cfg.Cluster.ExternalCloudProvider, ProvidedNodeIP: providedIPs(b.cfg.Host.IPs), ProviderID: b.k.ProviderID}
	addresses.Cloud = cloud.External
	spec := node.Spec{Name: b.cfg.NodeName, Labels: b.cfg.Cluster.NodeLabels, Taints: b.k.RegisterWithTaints, CloudProvider: cloud}
	machine := machineFacts(b, d)
	if d.managers != nil {
		machine.Devices = d.managers.device.Capacity
		spec.KeepExtendedResources = !d.managers.device.Fresh() // else those of the object are of another machine (rule dev-11)
	} else {
		spec.KeepExtendedResources = true
	}
	version := cached(factsAge, func(ctx context.Context) (string, error) {
		v, err := d.services.Service.Version(ctx, "")
		return v.GetRuntimeVersion(), err
	})
	current := cached(factsAge, d.runtime.Features)
	maxImages := int(deref(b.k.NodeStatusMaxImages))
	facts := node.Facts{
		Addresses: addresses.Addresses, CloudProvider: cloud, Machine: machine, KubeletPort: d.port, Declared: d.declared.names,
		MaxImages: maxImages, Images: imagesOf(d, maxImages), Pressure: pressure(d.evictions), VolumesInUse: d.volumes.VolumesInUse,
		Info: func(ctx context.Context) (v1.NodeSystemInfo, error) {
			info, err := node.ReadInfo(os.DirFS("/"))
			if !b.userNamespace.gate {
				info.RunningInUserNamespace = nil
			}
			info.KubeletVersion = b.cfg.Cluster.Version
			running, _ := version(ctx) // "" if the runtime does not respond
			info.ContainerRuntimeVersion = node.RuntimeVersion(d.services.Name, running)
			return info, err
		},
		Handlers: func(ctx context.Context) ([]v1.NodeRuntimeHandler, error) {
			f, err := current(ctx)
			return handlersOf(f), err
		},
		Features: func(ctx context.Context) (*v1.NodeFeatures, error) {
			f, err := current(ctx)
			if f.Unreported {
				return nil, err
			}
			return &v1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}, err
		},
		Health: nodeHealth(d),
	}
	cfg := node.Config{
		Spec: spec, Nodes: d.cluster.conn.Heartbeats.CoreV1().Nodes(), Leases: d.cluster.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		NoRegistration: b.k.RegisterNode != nil && !*b.k.RegisterNode,
		Timing: node.Timing{
			UpdatePeriod:  b.k.NodeStatusUpdateFrequency.Duration,
			ReportPeriod:  b.k.NodeStatusReportFrequency.Duration,
			LeaseDuration: time.Duration(b.k.NodeLeaseDurationSeconds) * time.Second,
		},
		Setters: facts.Setters(), Refresh: d.agent.Health().Check, Record: b.record, Unreachable: d.cluster.conn.closeAll, Logger: b.logger,
		Observed: func(n *v1.Node) {
			d.cluster.object.observed(n)
			if m := d.link.get(); m != nil {
				m.AttachChanged()
			}
		},
		Hooks: b.metrics.node(d.cluster.renewed(b)),
	}
	if err := adjust("Node", b.cfg.Adjust.Node, &cfg); err != nil {
		return nil, err
	}
	return node.New(cfg)
}

// imagesOf returns the function that lists the images of the node status; none if the maximum
// is 0.
func imagesOf(d nodeDeps, most int) func(context.Context) ([]node.Image, error) {
	if most == 0 {
		return func(context.Context) ([]node.Image, error) { return nil, nil }
	}
	return d.images.forNode(d.services, most)
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

// machineFacts returns the resources of the node status (rule cm-22); process IDs are no
// resource of pods.
func machineFacts(b base, d nodeDeps) node.Machine {
	capacity := maps.Clone(d.cgroups.total)
	delete(capacity, cm.ResourcePID)
	return node.Machine{
		Capacity:    func() (v1.ResourceList, error) { return capacity, nil },
		Allocatable: func() (v1.ResourceList, error) { return d.cgroups.allocatable, nil },
		MaxPods:     int64(b.cfg.maxPods()),

		NoEphemeralStorage: !isolatesStorage(b.k),
	}
}

// nodeHealth returns the function that reports the conditions of the node. Until the
// runtime was healthy for the first time, the health is unknown.
func nodeHealth(d nodeDeps) func() node.Health {
	healthy := false // at any time
	return func() node.Health {
		h := node.Health{
			Runtime: d.agent.Health().Runtime(), Network: d.agent.Health().Network(), Checks: []node.Check{{Name: "PLEG", Err: d.agent.PLEG().Healthy()}},
			Storage: d.cluster.storageErr(), Shutdown: d.shutdown.Err(), Warning: d.cgroups.warning(),
		}
		healthy = healthy || h.Runtime == nil && h.Checks[0].Err == nil && h.Network == nil
		h.Unknown = !healthy
		return h
	}
}

// handlersOf returns the runtime handlers of the node status (rule ns-17).
func handlersOf(f runtime.Features) []v1.NodeRuntimeHandler {
	var out []v1.NodeRuntimeHandler
	for _, name := range slices.Sorted(maps.Keys(f.Handlers)) {
		h := f.Handlers[name]
		out = append(out, v1.NodeRuntimeHandler{Name: name, Features: &v1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts, UserNamespaces: &h.UserNamespaces,
		}})
	}
	return out
}
