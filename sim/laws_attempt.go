package sim

import "fmt"

// attemptLaws are about the numbers that instances have.
func attemptLaws() []Invariant {
	return []Invariant{{
		Name: "attempts-only-grow", Rules: "rt-75, L-53", lists: true,
		Says:  "each instance of a container has a higher restart count than those before it, also when they have been removed from a runtime that keeps a record",
		begin: attemptsGrow,
	}}
}

// attemptsGrow lets a pod pass that was evicted: all of it may go, the record too,
// and a static one may be begun anew by the next agent, who does not know.
func attemptsGrow(t *truth) func(*Entry) string {
	type key struct {
		p    *podTruth
		name string
	}
	highest, seen := map[key]int32{}, map[string]bool{}
	return func(e *Entry) string {
		if e.Kind != Created && e.Kind != Started || seen[e.Container.ID] {
			return ""
		}
		seen[e.Container.ID] = true
		p := t.pod(e.UID)
		k := key{p, e.Container.Name}
		before, known := highest[k]
		highest[k] = max(before, e.Container.RestartCount)
		if !known || p.lives > 1 || p.evicted > 0 || p.removed && !t.remembers || e.Container.RestartCount > before {
			return ""
		}
		return fmt.Sprintf("%s is restart %d, and there was a restart %d", e.Container.ID, e.Container.RestartCount, before)
	}
}
