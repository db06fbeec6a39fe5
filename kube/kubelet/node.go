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
func newNode(ctx context.Context, b base, d nodeDeps) (*node.Node, error) {
	features, err := d.runtime.Features(ctx)
	if err != nil {
		b.logger.Warn("Failed to read the features of the runtime; the node declares none of them until the kubelet restarts", "err", err)
	}
	addresses := node.AddressConfig{NodeName: b.cfg.NodeName, NodeIPs: b.cfg.NodeIPs}
	spec := node.Spec{Name: b.cfg.NodeName, Labels: b.cfg.NodeLabels, Taints: b.k.RegisterWithTaints, ProvidedNodeIP: providedIPs(b.cfg.NodeIPs), ProviderID: b.k.ProviderID}
	machine := machineFacts(b, d)
	if d.managers != nil {
		machine.Devices = d.managers.device.Capacity
		spec.KeepDevices = !d.managers.device.Fresh() // else those of the object are of another machine (rule dev-11)
	} else {
		spec.KeepDevices = true
	}
	maxImages := int(deref(b.k.NodeStatusMaxImages))
	facts := node.Facts{
		Addresses: addresses.Addresses, Machine: machine, KubeletPort: d.port, Declared: declaredFeatures(d.services.noResize() == "", features),
		MaxImages: maxImages, Images: d.images.forNode(d.services, maxImages), Pressure: pressure(d.evictions), VolumesInUse: d.volumes.VolumesInUse,
		Info: func(ctx context.Context) (v1.NodeSystemInfo, error) {
			info, err := node.ReadInfo(os.DirFS("/"))
			info.KubeletVersion = Version
			var version string
			if v, err := d.services.Service.Version(ctx, ""); err == nil {
				version = v.RuntimeVersion
			}
			info.ContainerRuntimeVersion = node.RuntimeVersion(d.services.Name, version)
			return info, err
		},
		Handlers: func(ctx context.Context) ([]v1.NodeRuntimeHandler, error) {
			f, err := d.runtime.Features(ctx)
			return handlersOf(f), err
		},
		Features: func(ctx context.Context) (*v1.NodeFeatures, error) {
			f, err := d.runtime.Features(ctx)
			return &v1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}, err
		},
		Health: nodeHealth(d),
	}
	cfg := node.Config{
		Spec: spec, Nodes: d.cluster.conn.Heartbeats.CoreV1().Nodes(), Leases: d.cluster.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		Existing: b.k.RegisterNode != nil && !*b.k.RegisterNode,
		Period:   b.k.NodeStatusUpdateFrequency.Duration,
		// A Configuration with the update frequency only has both, as with the kubelet.
		ReportPeriod:  or(b.k.NodeStatusReportFrequency.Duration, b.k.NodeStatusUpdateFrequency.Duration),
		LeaseDuration: time.Duration(b.k.NodeLeaseDurationSeconds) * time.Second,
		Setters:       facts.Setters(), Refresh: d.agent.Health().Check, Record: b.record, Unreachable: d.cluster.conn.closeAll, Logger: b.logger,
		Seen: func(n *v1.Node) {
			d.cluster.object.seen(n)
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

// providedIPs returns the value of the annotation with the configured addresses.
func providedIPs(ips []net.IP) string {
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

// declaredFeatures returns the features that the node declares (KEP-5328), sorted. Pods
// that require a feature that is missing are not bound to the node, or not updated on it.
// As with the kubelet they are those of the runtime at the start.
func declaredFeatures(resize bool, has runtime.Features) []string {
	features := []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}
	if has.UserNamespacesHostNetwork {
		features = append(features, "UserNamespacesHostNetworkSupport")
	}
	if has.MountOptions {
		features = append(features, "VolumeBindMountOptions")
	}
	if resize {
		features = append(features, "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")
	}
	slices.Sort(features)
	return features
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
