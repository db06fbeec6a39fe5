package sim

import (
	"fmt"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// allocationInvariants are the invariants of resource allocation.
func allocationInvariants() []Invariant {
	return []Invariant{{
		Name: "synced-with-allocated-resources", Rules: "al-2, al-4", requiresCurrentLists: true,
		Description: "SyncPod gets the pod with resources that were allocated to it, also after a restart of the agent",
		newCheck:    syncedWithAllocated,
	}, {
		Name: "allocations-fit-node", Rules: "adm-7, al-9", requiresCurrentLists: true,
		Description: "the resources allocated to running pods never exceed those of the node",
		newCheck:    allocationsFit,
	}, {
		Name: "finally-resized", Rules: "al-7, al-14, al-20",
		Description: "finally, containers have the resources that were allocated to their pod, their status reports them, and no resize is pending that fits on the node",
		newCheck:    onSettled(finallyResized),
	}}
}

// syncedWithAllocated applies to pods with CPU requests. Static pods are not resized.
func syncedWithAllocated(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != SyncPodCalled || e.Object == nil {
			return ""
		}
		if p, cpu := t.pod(e.UID), cpuRequests(e.Object); cpu != "" && !p.allocations[cpu] {
			return fmt.Sprintf("SyncPod with %s, which was never allocated", cpu)
		}
		return ""
	}
}

func allocationsFit(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Started {
			return ""
		}
		sum := int64(0)
		for _, p := range t.pods {
			if p.allocated != nil && len(p.running()) > 0 {
				sum += podCPU(p.allocated)
			}
		}
		if sum > nodeCPU {
			return fmt.Sprintf("%d are allocated, the node has %d", sum, nodeCPU)
		}
		return ""
	}
}

func finallyResized(t *truth, p *podTruth) string {
	if p.desired == nil || p.desired.DeletionTimestamp != nil || p.allocated == nil || p.status == nil || status.Terminal(p.status.Phase) || t.now.Sub(p.lastChange) < stopBound {
		return ""
	}
	desired := int64(0)
	for _, other := range t.pods {
		if other.desired != nil {
			desired += podCPU(other.desired)
		}
	}
	if requested, allocated := cpuRequests(p.desired), cpuRequests(p.allocated); desired <= nodeCPU && requested != allocated {
		return fmt.Sprintf("%s is requested and %s is allocated, though the node has capacity", requested, allocated)
	}
	for i := range p.allocated.Spec.Containers {
		c := &p.allocated.Spec.Containers[i]
		is := p.newest(c.Name)
		if is == nil || is.State != runtime.ContainerRunning || milliCPU(c) == 0 {
			continue
		}
		if p.cpu[is.ID] != milliCPU(c) {
			return fmt.Sprintf("%s has %d, allocated is %d", is.ID, p.cpu[is.ID], milliCPU(c))
		}
		if reported := p.containerStatus(c.Name, is.ID); reported != nil && reported.AllocatedResources.Cpu().MilliValue() != milliCPU(c) {
			return fmt.Sprintf("the reported allocation of %s is %v, allocated is %d", is.ID, reported.AllocatedResources.Cpu(), milliCPU(c))
		}
	}
	return ""
}
