package sim

import (
	"fmt"

	"github.com/kubeparts/kubeparts/runtime"
)

// restartCountInvariants are the invariants of the restart counts in the runtime.
func restartCountInvariants() []Invariant {
	return []Invariant{{
		Name: "restart-count-increases", Rules: "rt-75", requiresCurrentLists: true,
		Description: "each instance of a container has a higher restart count than previous ones, also after these were removed if the machine keeps records",
		newCheck:    restartCountIncreases,
	}}
}

// restartCountIncreases does not apply to evicted pods: their containers and records may
// be removed, and the next agent may start a static one again. An instance that an operator
// removes while no agent runs, before it was started, does not count: its creation may have
// been the last call of an agent, and no trace of it is left.
func restartCountIncreases(t *truth) func(*Entry) string {
	type key struct {
		p    *podTruth
		name string
	}
	highest, counted := map[key]int32{}, map[string]bool{}
	agent := false
	return func(e *Entry) string {
		switch e.Kind {
		case AgentStarted, AgentKilled:
			agent = e.Kind == AgentStarted
			return ""
		case Created, Started, Removed:
		default:
			return ""
		}
		p := t.pod(e.UID)
		k := key{p, e.Container.Name}
		before, exists := highest[k]
		if e.Kind == Removed {
			if !agent && e.Container.State == runtime.ContainerCreated && e.Container.RestartCount == before {
				if highest[k]--; highest[k] < 0 {
					delete(highest, k)
				}
			}
			return ""
		}
		if counted[e.Container.ID] {
			return ""
		}
		counted[e.Container.ID] = true
		highest[k] = max(before, e.Container.RestartCount)
		if !exists || p.incarnations > 1 || p.evictedBy > 0 || p.containersRemoved && !t.keepsRecords || e.Container.RestartCount > before {
			return ""
		}
		return fmt.Sprintf("%s has restart count %d, an earlier instance had %d", e.Container.ID, e.Container.RestartCount, before)
	}
}
