package containers

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *service) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	list, err := s.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{Id: id})
	if err == nil && len(list) == 0 {
		err = notFound("stats of instance", id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (s *service) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if s.stats == nil {
		return nil, unsupported("ListContainerStats", "the backend is no StatsProvider")
	}
	v, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.stats.Stats(ctx)
	if err != nil {
		return nil, backendError(ctx, "stats", err)
	}
	now := time.Now().UnixNano()
	var list []*runtimeapi.ContainerStats
	for key, c := range v.instances {
		if filter.GetId() != "" && filter.Id != key || filter.GetPodSandboxId() != "" && filter.PodSandboxId != c.sandbox ||
			c.state == nil || !selects(filter.GetLabelSelector(), c.Labels) {
			continue
		}
		st := &runtimeapi.ContainerStats{Attributes: &runtimeapi.ContainerAttributes{Id: key, Metadata: c.Metadata, Labels: c.Labels, Annotations: c.Annotations}}
		if used, ok := all[c.state.ID]; ok {
			memory := &runtimeapi.UInt64Value{Value: used.Memory}
			st.Cpu = &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(used.CPU)}}
			st.Memory = &runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: memory}
		} else if c.state.Phase == Running {
			continue // it has just started
		}
		list = append(list, st)
	}
	return list, nil
}
