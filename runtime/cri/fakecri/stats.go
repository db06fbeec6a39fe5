package fakecri

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// fsMountpoint is an existing directory, because clients get its file system usage.
const fsMountpoint = "/"

// bytesPerInode is the number of bytes of a layer per inode.
const bytesPerInode = 16 << 10

// ContainerStats returns the resource usage of a running container.
func (r *Runtime) ContainerStats(ctx context.Context, containerID string) (*runtimeapi.ContainerStats, error) {
	return onContainer(ctx, r, r.ofContainer("ContainerStats", containerID), func(c *container) (*runtimeapi.ContainerStats, error) {
		if !c.running() {
			return nil, refused("stats of container %s: it does not run", c.id)
		}
		return c.statsLocked(time.Now()), nil
	})
}

// ListContainerStats returns the usage of the containers that match the filter, oldest first;
// for those that do not run only that of their writable layers.
func (r *Runtime) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return callLocked(ctx, r, fake.Call{Method: "ListContainerStats"}, func() ([]*runtimeapi.ContainerStats, error) {
		now := time.Now()
		id, sandboxID := r.containers.whole(filter.GetId()), r.sandboxes.whole(filter.GetPodSandboxId())
		var list []*runtimeapi.ContainerStats
		for c := range r.containersOfLocked(id, sandboxID, filter.GetLabelSelector()) {
			if (id == "" || c.id == id) && (sandboxID == "" || c.sandbox.id == sandboxID) &&
				selects(filter.GetLabelSelector(), c.config.GetLabels()) {
				list = append(list, c.statsLocked(now))
			}
		}
		return list, nil
	})
}

// PodSandboxStats returns the usage of a pod whose sandbox is ready: the sum over its containers,
// for cumulative values including exited ones.
func (r *Runtime) PodSandboxStats(ctx context.Context, podSandboxID string) (*runtimeapi.PodSandboxStats, error) {
	return onSandbox(ctx, r, r.ofSandbox("PodSandboxStats", podSandboxID), func(s *sandbox) (*runtimeapi.PodSandboxStats, error) {
		if !s.ready {
			return nil, status.Errorf(codes.Unavailable, "fakecri: stats of sandbox %s: it is not ready", s.id)
		}
		return s.statsLocked(time.Now()), nil
	})
}

// ListPodSandboxStats returns the usage of the ready sandboxes that match the filter, oldest first.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return callLocked(ctx, r, fake.Call{Method: "ListPodSandboxStats"}, func() ([]*runtimeapi.PodSandboxStats, error) {
		now := time.Now()
		id := r.sandboxes.whole(filter.GetId())
		var list []*runtimeapi.PodSandboxStats
		for s := range r.sandboxesOfLocked(id, filter.GetLabelSelector()) {
			if s.ready && (id == "" || s.id == id) && selects(filter.GetLabelSelector(), s.config.GetLabels()) {
				list = append(list, s.statsLocked(now))
			}
		}
		return list, nil
	})
}

// ImageFsInfo returns the disk usage of image layers, each counted once, including those of removed
// images in use, and of the writable layers of containers. It is one file system, so that there
// is no separate one for containers.
func (r *Runtime) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return callLocked(ctx, r, fake.Call{Method: "ImageFsInfo"}, func() (*runtimeapi.ImageFsInfoResponse, error) {
		now := time.Now()
		sizes := map[string]uint64{}
		for img := range r.images.here.all() {
			for _, l := range img.layers {
				sizes[l.Name] = l.Size
			}
		}
		var used uint64
		for c := range r.containers.all() {
			for _, l := range c.image.layers {
				sizes[l.Name] = l.Size
			}
			used += c.behavior.Disk.Bytes(c.age(now))
		}
		for _, size := range sizes {
			used += size
		}
		return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{fsUsage(now, used)}}, nil
	})
}

// age returns how long the container has run, or had run when it exited; negative if it was not
// started.
func (c *container) age(now time.Time) time.Duration {
	switch {
	case c.started == 0:
		return -1
	case c.ended != 0:
		return time.Duration(c.ended - c.started)
	}
	return time.Duration(now.UnixNano() - c.started)
}

// cpuLocked returns the CPU time that the container has used. It does not decrease.
func (c *container) cpuLocked(now time.Time) uint64 {
	c.cpuUsed = max(c.cpuUsed, c.behavior.CPU.Used(c.age(now)))
	return c.cpuUsed
}

func (c *container) statsLocked(now time.Time) *runtimeapi.ContainerStats {
	age := c.age(now)
	stats := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.id, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations,
		},
		WritableLayer: fsUsage(now, c.behavior.Disk.Bytes(age)),
	}
	if c.running() {
		stats.Cpu = cpuUsage(now, c.cpuLocked(now), c.behavior.CPU.At(age))
		stats.Memory = memoryUsage(now, c.behavior.Memory.Bytes(age), c.resources.GetLinux().GetMemoryLimitInBytes())
	}
	return stats
}

func (s *sandbox) statsLocked(now time.Time) *runtimeapi.PodSandboxStats {
	linux := &runtimeapi.LinuxPodSandboxStats{}
	used, cores, memory, processes := s.cpuUsed, 0.0, uint64(0), uint64(0)
	for _, c := range s.containers {
		linux.Containers = append(linux.Containers, c.statsLocked(now))
		if c.running() {
			used += c.cpuLocked(now)
			cores += c.behavior.CPU.At(c.age(now))
			memory += c.behavior.Memory.Bytes(c.age(now))
			processes++
		}
	}
	limit := s.resources.GetMemoryLimitInBytes()
	if limit == 0 {
		limit = s.config.GetLinux().GetResources().GetMemoryLimitInBytes()
	}
	linux.Cpu = cpuUsage(now, used, cores)
	linux.Memory = memoryUsage(now, memory, limit)
	linux.Process = &runtimeapi.ProcessUsage{Timestamp: now.UnixNano(), ProcessCount: number(processes)}
	if !s.hostNetwork() {
		eth0 := &runtimeapi.NetworkInterfaceUsage{Name: "eth0", RxBytes: number(0), RxErrors: number(0), TxBytes: number(0), TxErrors: number(0)}
		linux.Network = &runtimeapi.NetworkUsage{
			Timestamp: now.UnixNano(), DefaultInterface: eth0, Interfaces: []*runtimeapi.NetworkInterfaceUsage{eth0},
		}
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: s.id, Metadata: s.config.Metadata, Labels: s.config.Labels, Annotations: s.config.Annotations,
		},
		Linux: linux,
	}
}

func cpuUsage(now time.Time, used uint64, cores float64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: now.UnixNano(), UsageCoreNanoSeconds: number(used), UsageNanoCores: number(uint64(cores * 1e9))}
}

// memoryUsage returns usage without a page cache.
func memoryUsage(now time.Time, bytes uint64, limit int64) *runtimeapi.MemoryUsage {
	m := &runtimeapi.MemoryUsage{
		Timestamp: now.UnixNano(), WorkingSetBytes: number(bytes), UsageBytes: number(bytes), RssBytes: number(bytes),
		AvailableBytes: number(0), PageFaults: number(0), MajorPageFaults: number(0),
	}
	if limit > 0 && uint64(limit) > bytes {
		m.AvailableBytes.Value = uint64(limit) - bytes
	}
	return m
}

func fsUsage(now time.Time, bytes uint64) *runtimeapi.FilesystemUsage {
	return &runtimeapi.FilesystemUsage{
		Timestamp: now.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: fsMountpoint},
		UsedBytes: number(bytes), InodesUsed: number((bytes + bytesPerInode - 1) / bytesPerInode),
	}
}

func number(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }
