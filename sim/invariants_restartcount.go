package sim

import "fmt"

// restartCountInvariants are the invariants of the restart counts in the runtime.
func restartCountInvariants() []Invariant {
	return []Invariant{{
		Name: "restart-count-increases", Rules: "rt-75", requiresCurrentLists: true,
		Description: "each instance of a container has a higher restart count than previous ones, also after these were removed if the machine keeps records",
		newCheck:    restartCountIncreases,
	}}
}

// restartCountIncreases does not apply to evicted pods: their containers and records may
// be removed, and the next agent may start a static one again.
func restartCountIncreases(t *truth) func(*Entry) string {
	type key struct {
		p    *podTruth
		name string
	}
	highest, counted := map[key]int32{}, map[string]bool{}
	return func(e *Entry) string {
		if e.Kind != Created && e.Kind != Started || counted[e.Container.ID] {
			return ""
		}
		counted[e.Container.ID] = true
		p := t.pod(e.UID)
		k := key{p, e.Container.Name}
		before, exists := highest[k]
		highest[k] = max(before, e.Container.RestartCount)
		if !exists || p.incarnations > 1 || p.evictedBy > 0 || p.containersRemoved && !t.keepsRecords || e.Container.RestartCount > before {
			return ""
		}
		return fmt.Sprintf("%s has restart count %d, an earlier instance had %d", e.Container.ID, e.Container.RestartCount, before)
	}
}
