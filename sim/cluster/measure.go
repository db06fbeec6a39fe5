package cluster

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// measure measures the containers, kills those that are out of memory, and evaluates the
// eviction policy.
func (n *node) measure() {
	var over []*pod
	n.info.Used = n.spec.Reserved
	n.info.Used.Disk += n.imageBytes
	for _, p := range n.pods {
		if !p.live() {
			continue
		}
		p.memory, p.disk = p.usage()
		if limit := p.spec.Limits.Memory; limit > 0 && p.memory > limit {
			p.memory = limit
			if p.state == running {
				over = append(over, p)
			}
		}
		p.result.PeakMemory = max(p.result.PeakMemory, p.memory)
		n.info.Used.Memory += p.memory
		n.info.Used.Disk += p.disk
	}
	for _, p := range over {
		p.oomKill("limit")
	}
	for n.info.Used.Memory > n.capacity.Memory {
		victim := n.oomVictim()
		if victim == nil {
			break
		}
		victim.oomKill("node")
	}
	n.result.PeakMemory = max(n.result.PeakMemory, n.info.Used.Memory)
	n.result.PeakDisk = max(n.result.PeakDisk, n.info.Used.Disk)
	if n.stopping == 0 { // the kubelet makes no pass while it evicts a pod
		n.evictionPass()
	}
}

// oomVictim returns the pod that the kernel kills when the node has no memory left: that with
// the highest sum of its memory and of its OOM score adjustment, in thousandths of the node's
// memory. Nil if no container runs.
func (n *node) oomVictim() (victim *pod) {
	var worst int64
	for _, p := range n.pods {
		if p.state != running || p.memory == 0 {
			continue
		}
		score := p.memory + n.oomScoreAdj(p)*(n.capacity.Memory/1000)
		if victim == nil || score > worst {
			victim, worst = p, score
		}
	}
	return victim
}

// oomScoreAdj returns the OOM score adjustment that the kubelet sets for a container.
func (n *node) oomScoreAdj(p *pod) int64 {
	switch podspec.QOSClass(p.object) {
	case v1.PodQOSGuaranteed:
		return -997
	case v1.PodQOSBestEffort:
		return 1000
	}
	return min(max(1000-mulDiv(p.request.Memory, 1000, n.capacity.Memory), 3), 999)
}

// mulDiv returns a·b/c without overflow in between; the result must fit.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(quotient)
}

// evictionPass evaluates the node with the plan of package eviction and carries it out, as
// eviction.Manager does in a pass.
func (n *node) evictionPass() {
	c := n.cluster
	in := eviction.Inputs{
		Policy: c.cfg.Kubelet.Eviction, Now: c.time(), Last: n.last,
		Summary: n.summary(),
	}
	// Pods only matter if they exceed a limit of their own, or if they are ranked.
	n.addPods(&in, func(p *pod) bool { return p.spec.Limits.Disk > 0 && p.disk > p.spec.Limits.Disk })
	plan := in.Plan()
	if plan.Chosen != nil {
		in.Pods, in.Summary.Pods = nil, nil
		n.addPods(&in, func(*pod) bool { return true })
		plan = in.Plan()
	}
	n.last = plan
	n.setConditions(plan.Conditions)

	for _, e := range plan.Local {
		if e.Exempt == "" {
			n.byUID(e.Pod.UID).evict(e.Signal, e.Message, e.GracePeriodSeconds)
		}
	}
	if n.stopping > 0 || plan.Chosen == nil {
		return
	}
	// Of the steps, only the removal of images frees space: terminated containers use none.
	if len(plan.Steps) > 0 && n.collectImages(true) > 0 {
		summary := n.summary()
		summary.Pods = in.Summary.Pods
		if plan = plan.After(summary, nil); plan.Chosen == nil {
			return
		}
	}
	victims := plan.Victims
	for i := range plan.Ranking {
		if victims == 0 {
			return
		}
		if plan.Ranking[i].Exempt == "" {
			e := plan.Victim(i)
			n.byUID(e.Pod.UID).evict(e.Signal, e.Message, e.GracePeriodSeconds)
			victims--
		}
	}
}

// summary returns the usage of the node, without pods.
func (n *node) summary() *statsapi.Summary {
	now, s := metav1.NewTime(n.cluster.time()), new(statsapi.Summary)
	if capacity := n.spec.Capacity.Memory; capacity > 0 {
		used := min(n.info.Used.Memory, capacity)
		s.Node.Memory = &statsapi.MemoryStats{Time: now, AvailableBytes: new(uint64(capacity - used)), WorkingSetBytes: new(uint64(used))}
	}
	if capacity := n.spec.Capacity.Disk; capacity > 0 {
		used := min(n.info.Used.Disk, capacity)
		fs := &statsapi.FsStats{Time: now, AvailableBytes: new(uint64(capacity - used)), CapacityBytes: new(uint64(capacity)), UsedBytes: new(uint64(used))}
		s.Node.Fs = fs
		s.Node.Runtime = &statsapi.RuntimeStats{ImageFs: fs, ContainerFs: fs}
	}
	return s
}

// addPods adds the pods with a running container for which include returns true.
func (n *node) addPods(in *eviction.Inputs, include func(*pod) bool) {
	for _, p := range n.pods {
		if !p.live() || !include(p) {
			continue
		}
		memory, disk := &statsapi.MemoryStats{WorkingSetBytes: new(uint64(p.memory))}, &statsapi.FsStats{UsedBytes: new(uint64(p.disk))}
		in.Pods = append(in.Pods, p.object)
		in.Summary.Pods = append(in.Summary.Pods, statsapi.PodStats{
			PodRef: statsapi.PodReference{Namespace: p.object.Namespace, Name: p.object.Name, UID: string(p.object.UID)},
			Memory: memory, EphemeralStorage: disk,
			Containers: []statsapi.ContainerStats{{
				Name: containerName, Memory: memory, Rootfs: disk, Logs: &statsapi.FsStats{UsedBytes: new(uint64)},
			}},
		})
	}
}
