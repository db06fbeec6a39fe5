package sim

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// restoreInvariants are the invariants of pods that are restored from a checkpoint (KEP-5823).
func restoreInvariants() []Invariant {
	return []Invariant{{
		Name: "checkpoint-used-once", requiresCurrentLists: true,
		Description: "a pod is not restored again after all of its restored containers have been started",
		newCheck:    checkpointUsedOnce,
	}, {
		Name: "restored-whole", requiresCurrentLists: true,
		Description: "in a sandbox that was restored, no init container is started, and no container is created from its spec before the restored one has been started",
		newCheck:    onStarted(restoredWhole),
	}}
}

// checkpointUsedOnce does not apply to pods whose records are removed with their containers, as those of evicted pods:
// the next agent may start them again, and so restore them.
func checkpointUsedOnce(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != PodRestored {
			return ""
		}
		p := t.pod(e.UID)
		if p.containersRemoved || p.evictedBy > 0 || p.incarnations > 1 {
			return ""
		}
		for sandbox, ids := range p.restored {
			if sandbox != e.Call && !slices.ContainsFunc(ids, func(id string) bool { return !p.begun[id] }) {
				return fmt.Sprintf("sandbox %s was restored after all containers of %s had been started", e.Call, sandbox)
			}
		}
		return ""
	}
}

// restoredWhole does not apply to a pod of which a container has terminated: it cannot be restored again.
func restoredWhole(p *podTruth, c *runtime.ContainerStatus) string {
	ids, ok := p.restored[c.SandboxID]
	spec, init := p.container(c.Name)
	if !ok || spec == nil || slices.Contains(ids, c.ID) || p.containersRemoved || p.specChanged || podspec.MayRestartAll(p.spec) {
		return ""
	}
	if init && !podspec.IsSidecar(spec) {
		return fmt.Sprintf("%s is an init container, and was started in sandbox %s, which was restored", c.ID, c.SandboxID)
	}
	if slices.ContainsFunc(p.spec.Spec.Containers, func(c v1.Container) bool { n := p.newest(c.Name); return n != nil && p.final(n) }) {
		return ""
	}
	for _, id := range ids {
		if p.allInstances[id].Name == c.Name && !p.begun[id] {
			return fmt.Sprintf("%s was started although %s had been restored and was not started", c.ID, id)
		}
	}
	return ""
}
