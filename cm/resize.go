package cm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Resize changes one resource of a pod's cgroup, cpu or memory, to the values in after,
// which contains the pod's complete requests and limits. It is one step of a resize, and
// the caller is responsible for the order: the pod first if it grows, the containers
// first if it shrinks. A memory limit below the current usage is rejected. If Resize
// returns an error, the desired resources of the cgroup are unchanged.
func (m *Manager) Resize(ctx context.Context, pod *v1.Pod, name v1.ResourceName, after v1.ResourceRequirements) error {
	if m.cfg.Pods.Flat {
		return nil
	}
	h, _ := m.hold(pod)
	if err := h.busy.take(ctx); err != nil {
		return err
	}
	defer h.busy.give()
	all := m.cfg.Policy.withoutQuota(pod, m.cfg.Policy.compute(h.class, after.Requests, after.Limits))
	var r cgroups.Resources
	switch name {
	case v1.ResourceCPU:
		r.CPUShares, r.CPUQuota, r.CPUPeriod = all.CPUShares, all.CPUQuota, all.CPUPeriod
	case v1.ResourceMemory:
		r.Memory, r.MemoryMin, r.MemoryLow = all.Memory, all.MemoryMin, all.MemoryLow
		r.MemoryHigh = m.cfg.Policy.throttle(pod, after.Requests, after.Limits)
		if err := m.roomFor(h.name, r.Memory); err != nil {
			return err
		}
	default:
		return fmt.Errorf("cm: resize of %s: only cpu and memory can be resized", name)
	}
	if _, err := m.cfg.Tree.Read(h.name); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cm: resize of pod %s/%s: its cgroup has vanished: %w", pod.Namespace, pod.Name, err)
	}
	if err := m.apply(ctx, "update", h.name, r); err != nil {
		return fmt.Errorf("cm: resize of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	h.desired = r.Or(h.desired)
	m.mu.Lock()
	m.demand.sub(h.class, h.requested)
	if q, ok := after.Requests[v1.ResourceCPU]; ok && name == v1.ResourceCPU {
		h.requested.MilliCPU = podspec.MilliCPU(q)
	}
	if q, ok := after.Requests[v1.ResourceMemory]; ok && name == v1.ResourceMemory {
		h.requested.Memory = min(max(q.Value(), 0), mostMemory)
	}
	m.demand.add(h.class, h.requested)
	m.mu.Unlock()
	if err := m.updateQOS(ctx, false); err != nil {
		m.log.Warn("Failed to set cgroups of QoS classes; will retry", "err", err)
	}
	return nil
}

// roomFor returns an error if memory usage exceeds limit: with cgroup v2 the kernel would
// kill processes.
func (m *Manager) roomFor(name cgroups.Name, limit *int64) error {
	if limit == nil || *limit < 0 {
		return nil
	}
	stats, err := m.cfg.Tree.Stats(name)
	if err != nil || stats.Memory == nil || stats.Memory.Usage <= uint64(*limit) {
		return nil
	}
	return fmt.Errorf("cm: resize of %s: %d bytes of memory are in use, a limit of %d would end processes", name, stats.Memory.Usage, *limit)
}
