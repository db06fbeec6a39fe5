package process

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A usage is the resource usage of the processes of a container.
type usage struct {
	cpu       time.Duration // of all its processes, including reaped ones
	rss       uint64        // bytes
	processes uint64
}

// ContainerStats returns the CPU time, memory and size of the working directory of
// a container. CPU and memory are not set if it does not run, or on systems
// without /proc. It returns NotFound for an unknown ID.
func (r *Runtime) ContainerStats(_ context.Context, containerID string) (*runtimeapi.ContainerStats, error) {
	c, err := r.get(containerID)
	if err != nil {
		return nil, err
	}
	return r.stats(c, measure(supervisorsOf([]*container{c}))), nil
}

// ListContainerStats returns the stats of the running containers that match all
// parts of the filter.
func (r *Runtime) ListContainerStats(_ context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	running := r.running(func(c *container) bool {
		return (filter.GetId() == "" || filter.GetId() == c.rec.ID) &&
			(filter.GetPodSandboxId() == "" || filter.GetPodSandboxId() == c.rec.SandboxID) &&
			selects(filter.GetLabelSelector(), c.rec.Labels)
	})
	used := measure(supervisorsOf(running))
	var list []*runtimeapi.ContainerStats
	for _, c := range running {
		list = append(list, r.stats(c, used))
	}
	return list, nil
}

// PodSandboxStats returns the sums over the running containers of a sandbox. It
// returns NotFound for an unknown ID.
func (r *Runtime) PodSandboxStats(ctx context.Context, podSandboxID string) (*runtimeapi.PodSandboxStats, error) {
	list, err := r.ListPodSandboxStats(ctx, &runtimeapi.PodSandboxStatsFilter{Id: podSandboxID})
	if err != nil {
		return nil, err
	}
	if podSandboxID == "" || len(list) == 0 {
		return nil, status.Errorf(codes.NotFound, "process: sandbox %q not found", podSandboxID)
	}
	return list[0], nil
}

// ListPodSandboxStats returns the stats of the ready sandboxes that match all parts
// of the filter. Network usage is not set: the network is the host's.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	sandboxes, err := r.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{
		Id: filter.GetId(), LabelSelector: filter.GetLabelSelector(),
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	})
	if err != nil {
		return nil, err
	}
	bySandbox := map[string][]*container{}
	all := r.running(func(*container) bool { return true })
	for _, c := range all {
		bySandbox[c.rec.SandboxID] = append(bySandbox[c.rec.SandboxID], c)
	}
	used := measure(supervisorsOf(all))
	now := time.Now().UnixNano()
	var list []*runtimeapi.PodSandboxStats
	for _, s := range sandboxes {
		var sum usage
		stats := &runtimeapi.LinuxPodSandboxStats{}
		for _, c := range bySandbox[s.GetId()] {
			u := used[c.supervisorPID()]
			sum.cpu, sum.rss, sum.processes = sum.cpu+u.cpu, sum.rss+u.rss, sum.processes+u.processes
			stats.Containers = append(stats.Containers, r.stats(c, used))
		}
		stats.Cpu, stats.Memory = sum.stats(now)
		stats.Process = &runtimeapi.ProcessUsage{Timestamp: now, ProcessCount: &runtimeapi.UInt64Value{Value: sum.processes}}
		list = append(list, &runtimeapi.PodSandboxStats{
			Attributes: &runtimeapi.PodSandboxAttributes{Id: s.GetId(), Metadata: s.GetMetadata(), Labels: s.GetLabels(), Annotations: s.GetAnnotations()},
			Linux:      stats,
		})
	}
	return list, nil
}

func (r *Runtime) running(match func(*container) bool) []*container {
	var running []*container
	for _, c := range r.find(match) {
		r.refresh(c)
		if c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			running = append(running, c)
		}
	}
	return running
}

func (r *Runtime) stats(c *container, used map[int]usage) *runtimeapi.ContainerStats {
	now := time.Now().UnixNano()
	bytes, files := diskUsage(r.workDir(c.rec.ID))
	s := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: c.rec.ID, Metadata: c.metadata(), Labels: c.rec.Labels, Annotations: c.rec.Annotations},
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: string(r.dir)},
			UsedBytes: &runtimeapi.UInt64Value{Value: bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: files},
		},
	}
	if u, ok := used[c.supervisorPID()]; ok && c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING {
		s.Cpu, s.Memory = u.stats(now)
	}
	return s
}

func (u usage) stats(now int64) (*runtimeapi.CpuUsage, *runtimeapi.MemoryUsage) {
	return &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(u.cpu)}},
		&runtimeapi.MemoryUsage{
			Timestamp: now,
			// Without a cgroup the page cache is not counted: all three are the
			// resident set size.
			WorkingSetBytes: &runtimeapi.UInt64Value{Value: u.rss},
			UsageBytes:      &runtimeapi.UInt64Value{Value: u.rss},
			RssBytes:        &runtimeapi.UInt64Value{Value: u.rss},
		}
}

func (c *container) supervisorPID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Supervisor.PID
}

func supervisorsOf(containers []*container) []int {
	var pids []int
	for _, c := range containers {
		if c.state() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		if pid := c.supervisorPID(); pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
