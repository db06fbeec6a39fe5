package shutdown

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// maxPropagation is the maximum of Policy.Propagation.
const maxPropagation = 30 * time.Second

// A Group has pods that are terminated concurrently: those whose priority is at least that of
// the group and below that of the next one.
type Group struct {
	Priority int32

	// Period is how long the pods may take to terminate, in whole seconds. An empty group
	// takes no time.
	Period time.Duration
}

// GracePeriodSeconds returns the grace period of a pod of the group in seconds: g.Period, or the pod's
// own grace period if that is shorter.
func (g Group) GracePeriodSeconds(pod *v1.Pod) int64 { return gracePeriodSeconds(pod, g.Period) }

// A Policy is the operator's configuration. The zero value disables graceful shutdown: the
// machine is not delayed, and all pods are admitted.
type Policy struct {
	// Groups in any order. A pod whose priority is below all of them belongs to the lowest
	// one.
	Groups []Group

	// CarryOver gives unused time of groups to later ones. The total is not changed.
	CarryOver bool

	// Propagation is how long the pods of a group continue to run after their status is not
	// ready, so that traffic moves; at most 30 seconds. It is added to each group's Period.
	// Zero terminates them immediately.
	Propagation time.Duration

	// Flush is the additional time for the final statuses to be recorded, including those of
	// pods that were killed at the end of their time. Zero leaves the time that the pods have
	// not used.
	Flush time.Duration
}

// NewGroups returns the two groups of a kubelet's shutdownGracePeriod and
// shutdownGracePeriodCriticalPods. Critical pods are terminated last; critical is their part of
// total. Fractions of a second are dropped. If both are zero, there are no groups. As the
// kubelet, it returns an error if critical exceeds total, or if one of them is negative or
// positive and shorter than a second.
func NewGroups(total, critical time.Duration) ([]Group, error) {
	for name, d := range map[string]time.Duration{"grace period": total, "grace period of critical pods": critical} {
		if d != 0 && d < time.Second {
			return nil, fmt.Errorf("shutdown: invalid %s %v: must be 0 or at least 1s", name, d)
		}
	}
	switch {
	case critical > total:
		return nil, fmt.Errorf("shutdown: grace period of critical pods %v exceeds the total grace period %v", critical, total)
	case total == 0:
		return nil, nil
	}
	return []Group{{0, whole(total) - whole(critical)}, {podspec.SystemCriticalPriority, whole(critical)}}, nil
}

func whole(d time.Duration) time.Duration { return d.Truncate(time.Second) }

// Enabled reports whether a group has a Period.
func (p Policy) Enabled() bool {
	return slices.ContainsFunc(p.Groups, func(g Group) bool { return g.Period > 0 })
}

// Total returns the maximum duration of a shutdown.
func (p Policy) Total() time.Duration {
	total := p.Flush
	for _, g := range p.Groups {
		total += g.Period + p.Propagation
	}
	return total
}

// Within returns the policy for a machine that waits at most d, such as a preemptible one: all
// periods are shortened in proportion. If Total does not exceed d, the policy is not changed.
func (p Policy) Within(d time.Duration) Policy {
	total := p.Total()
	if d >= total || total <= 0 {
		return p
	}
	return p.scaled(max(float64(d), 0) / float64(total))
}

// sorted returns the groups by priority.
func (p Policy) sorted() []Group {
	return slices.SortedFunc(slices.Values(p.Groups), func(a, b Group) int { return cmp.Compare(a.Priority, b.Priority) })
}

func (p Policy) check() error {
	priorities := map[int32]bool{}
	for _, g := range p.Groups {
		switch {
		case g.Period < 0:
			return fmt.Errorf("group of priority %d: Period is negative: %v", g.Priority, g.Period)
		case priorities[g.Priority]:
			return fmt.Errorf("two groups have priority %d", g.Priority)
		}
		priorities[g.Priority] = true
	}
	switch {
	case p.Propagation < 0 || p.Propagation > maxPropagation:
		return fmt.Errorf("invalid Propagation %v: must be between 0 and %v", p.Propagation, maxPropagation)
	case p.Flush < 0:
		return fmt.Errorf("invalid Flush %v: negative", p.Flush)
	}
	return nil
}
