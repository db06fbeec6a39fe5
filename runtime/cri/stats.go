package cri

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// ContainerStats implements [runtime.StatsProvider].
func (r *Runtime) ContainerStats(ctx context.Context, containerID string) (*runtime.ContainerStats, error) {
	answer, err := r.cfg.Runtime.ContainerStats(r.quiet(ctx), runtimeID(containerID))
	if err != nil {
		return nil, fmt.Errorf("cri: stats of container %s: %w", containerID, err)
	}
	if answer.GetAttributes().GetId() == "" {
		return nil, fmt.Errorf("cri: stats of container %s: runtime returned none: %w", containerID, runtime.ErrNotFound)
	}
	s := r.containerStats(answer)
	return &s, nil
}

// PodStats implements [runtime.StatsProvider] with one call. If the runtime has no stats of
// pods, or fails because one pod has none (as containerd does for a pod without
// Cgroups), it returns the stats of containers without those of the pods.
func (r *Runtime) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	list, err := r.cfg.Runtime.ListPodSandboxStats(r.quiet(ctx), nil)
	if err != nil {
		err = fmt.Errorf("cri: list stats of sandboxes: %w", err)
		if ctx.Err() != nil || errors.Is(err, runtime.ErrUnavailable) {
			return nil, err
		}
		pods, also := r.podStatsByContainer(ctx)
		if also != nil {
			return nil, errors.Join(err, also)
		}
		return pods, nil
	}
	pods := make([]runtime.PodStats, 0, len(list))
	for _, s := range list {
		meta := s.GetAttributes().GetMetadata()
		if meta.GetUid() == "" || !r.cfg.Providers.Ledger.Owns(types.UID(meta.GetUid())) {
			continue // not of a pod of this node
		}
		linux := s.GetLinux()
		p := runtime.PodStats{
			UID: types.UID(meta.Uid), Name: meta.Name, Namespace: meta.Namespace, SandboxID: s.Attributes.Id,
			CPU: cpuUsage(linux.GetCpu()), Memory: memoryUsage(linux.GetMemory()), Processes: number(linux.GetProcess().GetProcessCount()),
		}
		p.NetworkAt = nanos(linux.GetNetwork().GetTimestamp())
		first := linux.GetNetwork().GetDefaultInterface()
		if first != nil {
			p.Network = append(p.Network, networkUsage(first))
		}
		for _, n := range linux.GetNetwork().GetInterfaces() {
			if n != nil && (first == nil || n.Name != first.Name) {
				p.Network = append(p.Network, networkUsage(n))
			}
		}
		for _, c := range linux.GetContainers() {
			if c.GetAttributes().GetId() != "" && runs(c) {
				p.Containers = append(p.Containers, r.containerStats(c))
			}
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// runs reports whether the container runs: stats of an exited container have only the
// writable layer.
func runs(c *runtimeapi.ContainerStats) bool { return c.Cpu != nil || c.Memory != nil }

func (r *Runtime) podStatsByContainer(ctx context.Context) ([]runtime.PodStats, error) {
	list, err := r.cfg.Runtime.ListContainerStats(r.quiet(ctx), nil)
	if err != nil {
		return nil, fmt.Errorf("cri: list stats of containers: %w", err)
	}
	var pods []runtime.PodStats
	at := map[string]int{}
	for _, c := range list {
		labels := c.GetAttributes().GetLabels()
		uid := labels[podconfig.LabelPodUID]
		if uid == "" || !r.cfg.Providers.Ledger.Owns(types.UID(uid)) || c.Attributes.Id == "" || !runs(c) {
			continue // not of a pod of this node, or exited
		}
		i, ok := at[uid]
		if !ok {
			i = len(pods)
			at[uid] = i
			pods = append(pods, runtime.PodStats{UID: types.UID(uid), Name: labels[podconfig.LabelPodName], Namespace: labels[podconfig.LabelPodNamespace]})
		}
		pods[i].Containers = append(pods[i].Containers, r.containerStats(c))
	}
	return pods, nil
}

// ImageFS implements [runtime.ImageFSReporter].
func (r *Runtime) ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error) {
	answer, err := r.cfg.Images.ImageFsInfo(r.quiet(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("cri: image file systems: %w", err)
	}
	all := func(list []*runtimeapi.FilesystemUsage) (out []runtime.FSUsage) {
		for _, f := range list {
			if f != nil {
				out = append(out, *fsUsage(f))
			}
		}
		return out
	}
	return all(answer.GetImageFilesystems()), all(answer.GetContainerFilesystems()), nil
}

func (r *Runtime) containerStats(s *runtimeapi.ContainerStats) runtime.ContainerStats {
	name := s.Attributes.GetMetadata().GetName()
	if name == "" {
		name = s.Attributes.Labels[podconfig.LabelContainerName]
	}
	out := runtime.ContainerStats{
		ID: r.id(s.Attributes.Id), Name: name, CPU: cpuUsage(s.Cpu), Memory: memoryUsage(s.Memory), WritableLayer: fsUsage(s.WritableLayer),
	}
	if s.Swap != nil {
		out.Swap = &runtime.SwapUsage{At: nanos(s.Swap.Timestamp), Available: number(s.Swap.SwapAvailableBytes), Usage: number(s.Swap.SwapUsageBytes)}
	}
	return out
}

func cpuUsage(c *runtimeapi.CpuUsage) *runtime.CPUUsage {
	if c == nil {
		return nil
	}
	return &runtime.CPUUsage{At: nanos(c.Timestamp), CoreNanos: number(c.UsageCoreNanoSeconds), NanoCores: number(c.UsageNanoCores)}
}

func memoryUsage(m *runtimeapi.MemoryUsage) *runtime.MemoryUsage {
	if m == nil {
		return nil
	}
	return &runtime.MemoryUsage{
		At: nanos(m.Timestamp), WorkingSet: number(m.WorkingSetBytes), Available: number(m.AvailableBytes), Usage: number(m.UsageBytes),
		RSS: number(m.RssBytes), Faults: number(m.PageFaults), MajorFaults: number(m.MajorPageFaults),
	}
}

func networkUsage(n *runtimeapi.NetworkInterfaceUsage) runtime.NetworkUsage {
	return runtime.NetworkUsage{
		Name: n.Name, RxBytes: number(n.RxBytes), RxErrors: number(n.RxErrors), TxBytes: number(n.TxBytes), TxErrors: number(n.TxErrors),
	}
}

func fsUsage(f *runtimeapi.FilesystemUsage) *runtime.FSUsage {
	if f == nil {
		return nil
	}
	return &runtime.FSUsage{At: nanos(f.Timestamp), Mountpoint: f.GetFsId().GetMountpoint(), Bytes: number(f.UsedBytes), Inodes: number(f.InodesUsed)}
}

func number(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return &v.Value
}
