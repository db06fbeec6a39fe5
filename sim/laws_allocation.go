package sim

import (
	"fmt"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// allocationLaws are about the resources of pods.
func allocationLaws() []Invariant {
	return []Invariant{{
		Name: "synced-as-granted", Rules: "al-2, al-4", lists: true,
		Says:  "the runtime is given a pod with resources that were allocated to it, also after a restart of the agent",
		begin: syncedAsGranted,
	}, {
		Name: "grants-fit", Rules: "adm-7, al-9", lists: true,
		Says:  "what was allocated to the pods that run is never more than the node has",
		begin: grantsFit,
	}, {
		Name: "rest-resized", Rules: "al-7, al-14, al-20",
		Says:  "in the end, containers have the resources that were allocated to their pod, their status reports them, and no resize is pending for which there is room",
		begin: atRest(restResized),
	}}
}

// syncedAsGranted judges pods of the API: manifests are not resized.
func syncedAsGranted(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != SyncBegan || e.Object == nil {
			return ""
		}
		if p, cpu := t.pod(e.UID), cpuOf(e.Object); cpu != "" && !p.grants[cpu] {
			return fmt.Sprintf("with %s, which was never allocated", cpu)
		}
		return ""
	}
}

func grantsFit(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Started {
			return ""
		}
		sum := int64(0)
		for _, p := range t.pods {
			if p.granted != nil && len(p.running()) > 0 {
				sum += total(p.granted)
			}
		}
		if sum > nodeCPU {
			return fmt.Sprintf("%d are allocated, and the node has %d", sum, nodeCPU)
		}
		return ""
	}
}

func restResized(t *truth, p *podTruth) string {
	if p.wanted == nil || p.wanted.DeletionTimestamp != nil || p.granted == nil || p.said == nil || status.Terminal(p.said.Phase) || t.now.Sub(p.touched) < longestStop {
		return ""
	}
	desired := int64(0)
	for _, other := range t.pods {
		if other.wanted != nil {
			desired += total(other.wanted)
		}
	}
	if want, got := cpuOf(p.wanted), cpuOf(p.granted); desired <= nodeCPU && want != got {
		return fmt.Sprintf("it wants %s and has %s, and the node has room", want, got)
	}
	for i := range p.granted.Spec.Containers {
		c := &p.granted.Spec.Containers[i]
		is := p.newest(c.Name)
		if is == nil || is.State != runtime.ContainerRunning || milli(c) == 0 {
			continue
		}
		if p.cpu[is.ID] != milli(c) {
			return fmt.Sprintf("%s has %d, and %d is allocated to it", is.ID, p.cpu[is.ID], milli(c))
		}
		if reported := p.reported(c.Name, is.ID); reported != nil && reported.AllocatedResources.Cpu().MilliValue() != milli(c) {
			return fmt.Sprintf("%s is reported to have %v, and %d is allocated to it", is.ID, reported.AllocatedResources.Cpu(), milli(c))
		}
	}
	return ""
}
