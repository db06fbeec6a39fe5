package sim

import (
	"maps"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A Checker evaluates invariants over entries that are not of a run of this package: package replay
// produces them from a recording. It must not be used concurrently.
type Checker struct {
	truth  *truth
	checks []invariantCheck
}

// NewChecker returns a Checker of invariants, elements of [Invariants]. An invariant whose kinds of entries are never
// added is never violated. keepsRecords and runsHooks have the meanings of the results of a Machine's methods.
func NewChecker(invariants []Invariant, keepsRecords, runsHooks bool) *Checker {
	c := &Checker{truth: newTruth()}
	c.truth.keepsRecords, c.truth.runsHooks, c.truth.reportsStops = keepsRecords, runsHooks, true
	for _, inv := range invariants {
		if inv.newCheck != nil {
			c.checks = append(c.checks, invariantCheck{inv.Name, inv.requiresCurrentLists, inv.newCheck(c.truth)})
		}
	}
	return c
}

// Add adds an entry, whose At is set, and returns the violations that it reveals. now is the
// time of the entry; entries are added in order of time. Pods in Object and the containers
// are kept and must not be changed later. The pods must have been passed to [SetIncarnation].
func (c *Checker) Add(e Entry, now time.Time) []Violation {
	c.truth.apply(&e, now)
	if e.UID != "" && e.Pod == "" {
		e.Pod = c.truth.pod(e.UID).name
	}
	return c.truth.violations(c.checks, &e)
}

// violations evaluates checks for an entry that was applied.
func (t *truth) violations(checks []invariantCheck, e *Entry) (out []Violation) {
	for _, j := range checks {
		if what := j.check(e); what != "" && !(j.requiresCurrentLists && t.listsMayBeStale()) {
			out = append(out, Violation{At: e.At, Invariant: j.name, UID: e.UID, Message: what})
		}
	}
	return out
}

// SetIncarnation sets the number of times that a pod with this UID was added to its
// source, from 1. An agent's calls may be late, when the next pod with the same UID
// exists already; the number, an annotation, associates them with the right one.
func SetIncarnation(pod *v1.Pod, n int) {
	pod.Annotations = maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[incarnationAnnotation] = strconv.Itoa(n)
}
