package hollow

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime"
)

// A usage is the resource usage of a node and its pods, as the behaviors of running containers
// specify it. It implements Stats of package kube/server.
type usage struct {
	node    string
	view    fakenode.View
	started time.Time // of the process, from which usage of the node is counted
}

// Summary implements server.Stats.
func (u usage) Summary(ctx context.Context, _ bool) (*statsapi.Summary, error) {
	return u.CPUAndMemory(ctx)
}

// CPUAndMemory implements server.Stats. The usage of the node is the sum over its pods.
func (u usage) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) {
	now := time.Now()
	out := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: u.node, StartTime: metav1.NewTime(u.started)}}
	out.Node.CPU, out.Node.Memory = &statsapi.CPUStats{}, &statsapi.MemoryStats{}
	rt := u.view.Runtime()
	for _, pod := range u.view.Pods() {
		status, err := rt.PodStatus(ctx, pod.UID)
		if err != nil {
			return out, err
		}
		p := statsapi.PodStats{
			PodRef: statsapi.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)},
			CPU:    &statsapi.CPUStats{}, Memory: &statsapi.MemoryStats{}, ProcessStats: &statsapi.ProcessStats{ProcessCount: new(uint64)},
		}
		if pod.Status.StartTime != nil {
			p.StartTime = *pod.Status.StartTime
		}
		for i := range status.Containers {
			c := &status.Containers[i]
			instance, ok := rt.Instance(c.ID)
			if !ok || c.State != runtime.ContainerRunning {
				continue
			}
			age, b := now.Sub(c.StartedAt), instance.Behavior
			cs := statsapi.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.StartedAt), CPU: &statsapi.CPUStats{}, Memory: &statsapi.MemoryStats{}}
			add(now, cs.CPU, cs.Memory, uint64(b.CPU.At(age)*1e9), b.CPU.Used(age), b.Memory.Bytes(age))
			cs.Rootfs = &statsapi.FsStats{Time: metav1.NewTime(now), UsedBytes: new(b.Disk.Bytes(age))}
			p.Containers = append(p.Containers, cs)
			*p.ProcessStats.ProcessCount++
			for cpu, memory := range map[*statsapi.CPUStats]*statsapi.MemoryStats{p.CPU: p.Memory, out.Node.CPU: out.Node.Memory} {
				add(now, cpu, memory, *cs.CPU.UsageNanoCores, *cs.CPU.UsageCoreNanoSeconds, *cs.Memory.WorkingSetBytes)
			}
		}
		if len(p.Containers) > 0 {
			out.Pods = append(out.Pods, p)
		}
	}
	add(now, out.Node.CPU, out.Node.Memory, 0, 0, 0)
	return out, nil
}

// add adds usage to statistics, whose fields are then not nil.
func add(now time.Time, cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, nanoCores, used, bytes uint64) {
	sum := func(field **uint64, n uint64) {
		if *field == nil {
			*field = new(uint64)
		}
		**field += n
	}
	cpu.Time, memory.Time = metav1.NewTime(now), metav1.NewTime(now)
	sum(&cpu.UsageNanoCores, nanoCores)
	sum(&cpu.UsageCoreNanoSeconds, used)
	for _, field := range []**uint64{&memory.UsageBytes, &memory.WorkingSetBytes, &memory.RSSBytes} {
		sum(field, bytes)
	}
}
