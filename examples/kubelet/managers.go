package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
	"github.com/kubeparts/kubeparts/internal/quiet"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// declareManagers declares the flags of the kubelet that say who gets which CPUs,
// memory and devices.
func declareManagers(fs *flag.FlagSet, o *options) {
	k := &o.kubelet
	fs.StringVar(&k.CPUManagerPolicy, "cpu-manager-policy", k.CPUManagerPolicy, "`none or static`: static gives Guaranteed pods whole CPUs of their own")
	fs.Func("cpu-manager-policy-options", "`options` of the policy: full-pcpus-only=true,…", pairs(&k.CPUManagerPolicyOptions, "="))
	fs.Var(&reservedMemoryFlag{into: &k.ReservedMemory}, "reserved-memory", "memory of each NUMA node that pods cannot have, as `node:memory=amount,…;…`: 0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi")
	fs.StringVar(&k.MemoryManagerPolicy, "memory-manager-policy", k.MemoryManagerPolicy, "`None or Static`: Static gives Guaranteed pods memory of certain NUMA nodes")
	fs.StringVar(&k.TopologyManagerPolicy, "topology-manager-policy", k.TopologyManagerPolicy, "`none, best-effort, restricted or single-numa-node`: how close together what a container gets has to be")
	fs.StringVar(&k.TopologyManagerScope, "topology-manager-scope", k.TopologyManagerScope, "`container or pod`: what is kept together")
	fs.StringVar(&o.devicePlugins, "device-plugins-dir", "", "`directory` where device plugins register (default: below --root; plugins look in /var/lib/kubelet/device-plugins)")
	fs.StringVar(&o.podResources, "pod-resources-dir", "", "`directory` of the pod resources API's socket (default: below --root; monitors look in /var/lib/kubelet/pod-resources)")
	fs.Func("topology-manager-policy-options", "`options` of the policy: prefer-closest-numa-nodes=true,…", pairs(&k.TopologyManagerPolicyOptions, "="))
}

// nodeManagers give out what the node has few of.
type nodeManagers struct {
	*managers.Managers
	cpu       *cpu.Manager
	memory    *memory.Manager
	device    *device.Manager
	resources *podresources.Server
	logger    *slog.Logger
}

// readManagers makes the managers of a CRI runtime's containers. Plain processes
// have none.
func (a *assembly) readManagers(ctx context.Context, service internalapi.RuntimeService, capacity v1.ResourceList) (*nodeManagers, error) {
	opts, k := a.opts, a.opts.kubelet
	if service == nil {
		if wants := k.CPUManagerPolicy + k.MemoryManagerPolicy; strings.Contains(strings.ToLower(wants), "static") {
			return nil, errors.New("plain processes can't be given CPUs or memory of their own: --cpu-manager-policy and --memory-manager-policy need a CRI runtime")
		}
		return nil, nil
	}
	machine, err := topology.Read(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	reserved, err := reservedOf(k, capacity)
	if err != nil {
		return nil, err
	}
	running, adopt, err := runningNow(quiet.Context(ctx, a.logger), service)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(opts.root, 0o750), os.MkdirAll(opts.devicePlugins, 0o750)); err != nil {
		return nil, err
	}
	m := &nodeManagers{logger: a.logger}
	if m.cpu, err = a.openCPU(machine, reserved, running, service); err != nil {
		return nil, err
	}
	if m.memory, err = a.openMemory(machine, reserved, running); err != nil {
		return nil, err
	}
	active := func(uid types.UID) bool { return !a.pods.finished(uid) }
	m.device, err = device.Open(device.Config{
		Dir: opts.devicePlugins, Nodes: machine.AllNodes(), Adopt: adopt, Logger: a.logger, Active: active,
		Runs: func(uid types.UID) bool {
			return slices.ContainsFunc(running, func(r cpu.Running) bool { return r.PodUID == uid })
		},
		Hooks: a.count.devices(func(resource string) { // a pod may wait for it, or shows its health
			for _, pod := range a.pods.running() {
				if wants(pod, resource) {
					a.inbox.PodChanged(pod.UID)
				}
			}
		}),
	})
	if err != nil {
		return nil, err
	}
	options, err := topology.ParseOptions(k.TopologyManagerPolicyOptions)
	if err != nil {
		return nil, err
	}
	joint, err := topology.NewManager(topology.Config{
		Machine: machine, Policy: topology.Policy(k.TopologyManagerPolicy), Scope: topology.Scope(k.TopologyManagerScope), Options: options,
		Providers: managers.Providers(m.device, m.cpu, m.memory), Hooks: a.count.Topology(), Logger: a.logger,
	})
	if err != nil {
		return nil, err
	}
	m.Managers, err = managers.New(managers.Config{Topology: joint, CPU: m.cpu, Memory: m.memory, Device: m.device, Active: active})
	if err != nil {
		return nil, err
	}
	m.resources, err = podresources.New(podresources.Config{
		Socket: filepath.Join(opts.podResources, "kubelet.sock"), Pods: a.pods.running, CPUs: m.cpu, Memory: m.memory, Devices: m.device, Called: a.count.remote.PodResources, Logger: a.logger,
	})
	return m, err
}

// wants reports whether one of a pod's containers asks for a resource.
func wants(pod *v1.Pod, resource string) bool {
	asks := func(c v1.Container) bool {
		name := v1.ResourceName(resource)
		_, limited := c.Resources.Limits[name]
		_, requested := c.Resources.Requests[name]
		return limited || requested
	}
	return slices.ContainsFunc(pod.Spec.InitContainers, asks) || slices.ContainsFunc(pod.Spec.Containers, asks)
}

func (a *assembly) openCPU(machine *topology.Machine, reserved cm.Reserved, running []cpu.Running, service internalapi.RuntimeService) (*cpu.Manager, error) {
	k := a.opts.kubelet
	options, err := cpu.ParseOptions(k.CPUManagerPolicyOptions)
	if err != nil {
		return nil, err
	}
	cpus, err := topology.ParseCPUs(k.ReservedSystemCPUs)
	if err != nil {
		return nil, fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	milli := reserved.System.Cpu().MilliValue() + reserved.Kube.Cpu().MilliValue()
	return cpu.Open(cpu.Config{
		Machine: machine, Policy: cpu.Policy(k.CPUManagerPolicy), Options: options, Topology: topology.Policy(k.TopologyManagerPolicy),
		Reserved: cpus, ReservedMilli: milli, Store: cmstate.File(filepath.Join(a.opts.root, cpu.StateFile)), Running: running, Hooks: a.count.CPU(), Logger: a.logger,
		Apply: &cpu.Apply{
			Active: func(uid types.UID) bool { return !a.pods.finished(uid) },
			Containers: func(ctx context.Context) ([]cpu.Container, error) {
				return runningContainers(quiet.Context(ctx, a.logger), service)
			},
			Update: func(ctx context.Context, id string, cpus cpuset.CPUSet) error {
				return service.UpdateContainerResources(quiet.Context(ctx, a.logger), id, &runtimeapi.ContainerResources{
					Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: cpus.String()},
				})
			},
		},
	})
}

func (a *assembly) openMemory(machine *topology.Machine, reserved cm.Reserved, running []cpu.Running) (*memory.Manager, error) {
	k := a.opts.kubelet
	total := memory.Request{}
	for _, list := range []v1.ResourceList{reserved.System, reserved.Kube, reserved.Eviction} {
		total[v1.ResourceMemory] += uint64(max(list.Memory().Value(), 0))
	}
	return memory.Open(memory.Config{
		Machine: machine, Policy: memory.Policy(k.MemoryManagerPolicy), Reserved: reservedMemory(k.ReservedMemory), Total: total,
		Store: cmstate.File(filepath.Join(a.opts.root, memory.StateFile)), Hooks: a.count.Memory(), Logger: a.logger,
		Runs: func(uid types.UID, container string) bool {
			for _, r := range running {
				if r.PodUID == uid && r.Container == container {
					return true
				}
			}
			return false
		},
	})
}

// reservedMemory returns what pods cannot have of each NUMA node.
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

// runningNow tells what runs, for states that are lost or no longer fit: CPUs and
// devices of containers.
func runningNow(ctx context.Context, service internalapi.RuntimeService) ([]cpu.Running, []device.Adopted, error) {
	list, err := service.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		return nil, nil, fmt.Errorf("list the containers: %w", err)
	}
	var running []cpu.Running
	var adopt []device.Adopted
	for _, c := range list {
		uid, name := ownerOf(c.Labels)
		if uid == "" {
			continue
		}
		r := cpu.Running{PodUID: uid, Container: name}
		if st, err := service.ContainerStatus(ctx, c.Id, false); err == nil {
			linux := st.GetStatus().GetResources().GetLinux()
			if cpus, err := topology.ParseCPUs(linux.GetCpusetCpus()); err == nil {
				r.CPUs, r.Exclusive = cpus, cpu.LooksExclusive(cpus, linux.GetCpuShares())
			}
		}
		running = append(running, r)
		if a := managers.Adopted(uid, name, c.Annotations); a != nil {
			adopt = append(adopt, *a)
		}
	}
	return running, adopt, nil
}

// runningContainers lists those whose CPUs are looked after.
func runningContainers(ctx context.Context, service internalapi.RuntimeService) ([]cpu.Container, error) {
	list, err := service.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	var out []cpu.Container
	for _, c := range list {
		if uid, name := ownerOf(c.Labels); uid != "" {
			out = append(out, cpu.Container{PodUID: uid, Name: name, ID: c.Id})
		}
	}
	return out, err
}

// ownerOf tells whose a container is, by the labels that it was made with.
func ownerOf(labels map[string]string) (types.UID, string) {
	return types.UID(labels["io.kubernetes.pod.uid"]), labels["io.kubernetes.container.name"]
}

// intoContainers makes the runtime give containers what they were admitted with.
func (m *nodeManagers) intoContainers(cfg *cri.Config) {
	if m != nil {
		cfg.Managers = m.Managers
	}
}

// exclusiveCPUs reports whether a container of the pod has CPUs that no other may use.
func (m *nodeManagers) exclusiveCPUs(pod *v1.Pod) bool {
	return m != nil && len(m.ExclusiveCPUs(pod)) > 0
}

// Admit implements podworker.Admitter: without managers it admits every pod.
func (m *nodeManagers) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	if m == nil {
		return nil
	}
	return m.Managers.Admit(ctx, pod)
}

// health tells how the devices of a pod are; nil: it can't have any.
func (m *nodeManagers) health() func(types.UID) map[string][]v1.ResourceStatus {
	if m == nil {
		return nil
	}
	return m.device.Health
}

// intoNode adds the devices to what the node has. fresh: what its object says of
// devices is of another machine (dev-11).
func (m *nodeManagers) intoNode(machine node.Machine) (_ node.Machine, fresh bool) {
	if m == nil {
		return machine, false
	}
	machine.Devices = m.device.Capacity
	return machine, m.device.Fresh()
}

// retain takes back what the pods have that are not kept.
func (m *nodeManagers) retain(keep func(types.UID) bool) {
	if m != nil {
		m.Retain(keep)
	}
}

// Run keeps containers on their CPUs and serves device plugins, until ctx ends. A
// socket that can't be served leaves the agent without it.
func (m *nodeManagers) Run(ctx context.Context) error {
	if m == nil {
		<-ctx.Done()
		return nil
	}
	done := make(chan struct{}, 2)
	for what, run := range map[string]func(context.Context) error{"device plugins": m.device.Run, "the pod resources API": m.resources.Run} {
		go func() {
			defer func() { done <- struct{}{} }()
			if err := run(ctx); err != nil {
				m.logger.Error(what+" can't be served", "err", err)
			}
		}()
	}
	err := m.cpu.Run(ctx)
	<-done
	<-done
	return err
}
