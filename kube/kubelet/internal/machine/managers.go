package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/managers"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/podresources"
	cmstate "github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

// ResourceManagers allocate CPUs, memory and devices to containers. A nil
// *resourceManagers allocates none.
type ResourceManagers struct {
	*managers.Managers
	cpu       *cpu.Manager
	memory    *memory.Manager
	Device    *device.Manager
	Claims    *volumes.Claims // nil: pods with claims are rejected
	resources *podresources.Server
	base      stores.Base
}

// newResourceManagers constructs the managers; nil for plain processes.
func newResourceManagers(ctx context.Context, b stores.Base, s Services, reserved cm.Reserved, cl *volumes.Claims, c *stores.Cluster) (*ResourceManagers, error) {
	k := b.Configuration
	if s.Processes {
		if policies := k.CPUManagerPolicy + k.MemoryManagerPolicy; strings.Contains(strings.ToLower(policies), "static") {
			return nil, errors.New("cpuManagerPolicy, memoryManagerPolicy: plain processes cannot have exclusive CPUs or memory")
		}
		return nil, nil
	}
	machine, err := topology.Read(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	runtime := managers.CRI{Runtime: s.Service, Logger: b.Logger, Owns: s.Ledger.Owns}
	running, adopted, err := runtime.Running(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.Config.Host.DevicePluginsDir, 0o750); err != nil {
		return nil, err
	}
	users := managedPods{b.Pods, running}
	m := &ResourceManagers{Claims: cl, base: b}
	if m.cpu, err = newCPUManager(b, machine, reserved, running, runtime); err != nil {
		return nil, err
	}
	if m.memory, err = newMemoryManager(b, machine, reserved, running); err != nil {
		return nil, err
	}
	if m.Device, err = newDeviceManager(b, machine, users, adopted, c); err != nil {
		return nil, err
	}
	if err := m.join(machine, users); err != nil {
		return nil, err
	}
	return m, nil
}

// join constructs what the managers share: the decision about NUMA nodes, admission, and the API
// that reports their allocations.
func (m *ResourceManagers) join(machine *topology.Machine, users managedPods) error {
	b, k := m.base, m.base.Configuration
	options, err := topology.ParseOptions(k.TopologyManagerPolicyOptions)
	if err != nil {
		return err
	}
	joint, err := topology.NewManager(topology.Config{
		Machine: machine, Policy: topology.Policy(k.TopologyManagerPolicy), Scope: topology.Scope(k.TopologyManagerScope), Options: options, PodLevel: podLevelScope(k),
		Providers: managers.Providers(m.Device, m.cpu, m.memory), Hooks: b.Metrics.Topology(), Logger: b.Logger,
	})
	if err != nil {
		return err
	}
	joined := managers.Config{Topology: joint, CPU: m.cpu, Memory: m.memory, Device: m.Device, Active: users.Active}
	monitored := podresources.Config{
		Socket: filepath.Join(b.Config.Host.PodResourcesDir, "kubelet.sock"), Pods: b.Pods, CPUs: m.cpu, Memory: m.memory, Devices: m.Device,
		Called: b.Metrics.Remote.PodResources, Logger: b.Logger,
	}
	if m.Claims != nil {
		joined.Claims, monitored.Claims = m.Claims, m.Claims
	}
	if m.Managers, err = managers.New(joined); err != nil {
		return err
	}
	m.resources, err = podresources.New(monitored)
	return err
}

// newDeviceManager constructs the manager of the devices of plugins.
func newDeviceManager(b stores.Base, machine *topology.Machine, users managedPods, adopted []device.Adopted, c *stores.Cluster) (*device.Manager, error) {
	return device.Open(device.Config{
		Dir: b.Config.Host.DevicePluginsDir, Nodes: machine.AllNodes(), Adopt: adopted, Logger: b.Logger,
		Pods: users, Elsewhere: c.Advertises,
		Changed: func(resource string) { // pods may wait for it, or report its health
			for _, pod := range b.Pods.Running() {
				if Requests(pod, resource) {
					b.Health.Change(pod.UID)
				}
			}
		},
		Hooks: b.Metrics.Remote.Devices(),
	})
}

// advertises reports whether a resource is one of device plugins.
func (m *ResourceManagers) advertises(name v1.ResourceName) bool {
	return m != nil && m.Device.Manages(string(name))
}

// Requests reports whether a container of the pod requests a resource.
func Requests(pod *v1.Pod, resource string) bool {
	does := func(c v1.Container) bool {
		name := v1.ResourceName(resource)
		_, limited := c.Resources.Limits[name]
		_, requested := c.Resources.Requests[name]
		return limited || requested
	}
	return slices.ContainsFunc(pod.Spec.InitContainers, does) || slices.ContainsFunc(pod.Spec.Containers, does)
}

func newCPUManager(b stores.Base, machine *topology.Machine, reserved cm.Reserved, running []cpu.Running, runtime managers.CRI) (*cpu.Manager, error) {
	k := b.Configuration
	options, err := cpu.ParseOptions(k.CPUManagerPolicyOptions)
	if err != nil {
		return nil, err
	}
	cpus, err := topology.ParseCPUs(k.ReservedSystemCPUs)
	if err != nil {
		return nil, fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	options.PodLevel = podLevelScope(k)
	hooks := b.Metrics.CPU()
	if options.PodLevel != "" {
		hooks = hooks.Join(b.Metrics.CPUAssignments())
	}
	return cpu.Open(cpu.Config{
		Machine: machine, Policy: cpu.Policy(k.CPUManagerPolicy), Options: options, Topology: topology.Policy(k.TopologyManagerPolicy),
		Reserved: cpus, ReservedMilli: reserved.System.Cpu().MilliValue() + reserved.Kube.Cpu().MilliValue(),
		Store: cmstate.File(filepath.Join(b.Config.RootDir, cpu.StateFile)), Running: running, Hooks: hooks, Logger: b.Logger,
		Runtime: cpuRuntime{runtime, managedPods{b.Pods, running}},
	})
}

// managedPods implements device.Pods.
type managedPods struct {
	pods    stores.Pods
	running []cpu.Running // when the managers were opened
}

func (p managedPods) Active(uid types.UID) bool { return !p.pods.Terminated(uid) }

func (p managedPods) Ran(uid types.UID) bool {
	return slices.ContainsFunc(p.running, func(r cpu.Running) bool { return r.PodUID == uid })
}

// cpuRuntime implements cpu.Runtime.
type cpuRuntime struct {
	managers.CRI
	managedPods
}

func newMemoryManager(b stores.Base, machine *topology.Machine, reserved cm.Reserved, running []cpu.Running) (*memory.Manager, error) {
	total := memory.Request{}
	for _, list := range []v1.ResourceList{reserved.System, reserved.Kube, reserved.Eviction} {
		total[v1.ResourceMemory] += uint64(max(list.Memory().Value(), 0))
	}
	scope, hooks := podLevelScope(b.Configuration), b.Metrics.Memory()
	if scope != "" {
		hooks = hooks.Join(b.Metrics.MemoryAssignments())
	}
	return memory.Open(memory.Config{
		Machine: machine, Policy: memory.Policy(b.Configuration.MemoryManagerPolicy), PodLevel: scope, Reserved: reservedMemory(b.Configuration.ReservedMemory), Total: total,
		Store: cmstate.File(filepath.Join(b.Config.RootDir, memory.StateFile)), Hooks: hooks, Logger: b.Logger,
		Runs: func(uid types.UID, container string) bool {
			return slices.ContainsFunc(running, func(r cpu.Running) bool { return r.PodUID == uid && r.Container == container })
		},
	})
}

// podLevelScope returns the scope in which pods with pod-level resources have CPUs and memory of their own, with the
// feature gate PodLevelResourceManagers; otherwise none. Without a policy, the topology manager has no scope, and
// allocates to each container.
func podLevelScope(k *kubeletconfig.KubeletConfiguration) topology.Scope {
	switch {
	case !config.Enabled(k, "PodLevelResourceManagers"):
		return ""
	case topology.Policy(k.TopologyManagerPolicy) == topology.None || topology.Scope(k.TopologyManagerScope) != topology.PodScope:
		return topology.ContainerScope
	default:
		return topology.PodScope
	}
}

// reservedMemory returns the reserved memory of each NUMA node.
func reservedMemory(in []kubeletconfig.MemoryReservation) map[int]memory.Request {
	out := map[int]memory.Request{}
	for _, r := range in {
		req := memory.Request{}
		for name, amount := range r.Limits {
			req[name] = uint64(max(amount.Value(), 0))
		}
		out[int(r.NumaNode)] = req
	}
	return out
}

// noQuota reports whether the pod has no CPU quota because of exclusive CPUs.
func (m *ResourceManagers) noQuota(pod *v1.Pod) bool {
	return m != nil && m.NoQuota(pod)
}

// sharedCPUs returns all CPUs of the machine, if no container can have exclusive ones.
func (m *ResourceManagers) sharedCPUs() cpuset.CPUSet {
	if m == nil || cpu.Policy(m.base.Configuration.CPUManagerPolicy) == cpu.Static {
		return cpuset.CPUSet{}
	}
	return m.cpu.Allocatable()
}

// Health returns the health of the devices of a pod, by container name.
func (m *ResourceManagers) Health(uid types.UID) map[string][]v1.ResourceStatus {
	if m == nil {
		return nil
	}
	all := m.Device.Health(uid)
	for name, more := range m.Claims.DeviceHealth(uid) {
		if all == nil {
			all = map[string][]v1.ResourceStatus{}
		}
		all[name] = append(all[name], more...)
	}
	return all
}

// components returns what runs for the managers.
func (m *ResourceManagers) components() []stores.Component {
	if m == nil {
		return nil
	}
	return append(m.Claims.Components(), m.cpu.Run, m.base.Serve("device plugins", m.Device.Run), m.base.Serve("pod resources", m.resources.Run))
}
