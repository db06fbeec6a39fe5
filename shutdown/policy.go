package shutdown

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// CriticalPriority is from where on a pod is critical to its node.
const CriticalPriority = 2_000_000_000

// MaxPropagation bounds [Policy].Propagation (F-63).
const MaxPropagation = 30 * time.Second

// A Group is the pods that end at the same time: those whose priority is at least
// this, and less than that of the next group.
type Group struct {
	Priority int32

	// Period is how long they have to end, in whole seconds. A group of which
	// nobody is there takes no time (sh-7).
	Period time.Duration
}

// A Policy is what the operator decides. Its zero value is off: nobody is asked to
// wait for this node, and all pods are admitted.
type Policy struct {
	// Groups in any order. A pod whose priority is below all of them is in the
	// lowest one (sh-3).
	Groups []Group

	// CarryOver gives the time that groups have not used to those after them. The
	// time of all together stays what it is (F-65).
	CarryOver bool

	// Propagation is how long a group's pods run on after their record says that
	// they are not ready, so that no more traffic comes to them; 30 seconds at most
	// (F-63). It is in addition to each group's Period. Zero: they are ended at
	// once.
	Propagation time.Duration

	// Flush is how long, in addition, the last statuses may take to be recorded,
	// those of pods too that were killed when their time was over. Zero: they have what the pods have left of their time (F-64).
	Flush time.Duration
}

// Simple returns the two groups of a kubelet's shutdownGracePeriod and
// shutdownGracePeriodCriticalPods, of which the latter is a part: critical pods are
// terminated last, and have that part (sh-2). Fractions of a second are dropped. If
// both are zero there are no groups. It returns an error if critical is longer than
// total, or if one of them is negative or shorter than a second, as the kubelet does.
func Simple(total, critical time.Duration) ([]Group, error) {
	for name, d := range map[string]time.Duration{"in all": total, "of critical pods": critical} {
		if d != 0 && d < time.Second {
			return nil, fmt.Errorf("shutdown: the grace period %s is %v: want 0, or 1s at least", name, d)
		}
	}
	switch {
	case critical > total:
		return nil, fmt.Errorf("shutdown: the grace period of critical pods is %v, which is more than that in all, %v", critical, total)
	case total == 0:
		return nil, nil
	}
	return []Group{{0, whole(total) - whole(critical)}, {CriticalPriority, whole(critical)}}, nil
}

func whole(d time.Duration) time.Duration { return d.Truncate(time.Second) }

// Enabled reports whether there is anything to wait for (sh-1).
func (p Policy) Enabled() bool {
	return slices.ContainsFunc(p.Groups, func(g Group) bool { return g.Period > 0 })
}

// Total is the longest that a shutdown may have to wait for this node.
func (p Policy) Total() time.Duration {
	total := p.Flush
	for _, g := range p.Groups {
		total += g.Period + p.Propagation
	}
	return total
}

// Within returns the policy for a machine that will not wait longer than d, as one
// that its owner takes back: all times are shortened alike. A policy that needs less
// stays as it is.
func (p Policy) Within(d time.Duration) Policy {
	total := p.Total()
	if d >= total || total <= 0 {
		return p
	}
	return p.scaled(max(float64(d), 0) / float64(total))
}

// sorted returns the groups by priority (sh-3).
func (p Policy) sorted() []Group {
	return slices.SortedFunc(slices.Values(p.Groups), func(a, b Group) int { return cmp.Compare(a.Priority, b.Priority) })
}

// check returns what of the policy cannot be.
func (p Policy) check() error {
	seen := map[int32]bool{}
	for _, g := range p.Groups {
		switch {
		case g.Period < 0:
			return fmt.Errorf("the period of the group of priority %d is negative: %v", g.Priority, g.Period)
		case seen[g.Priority]:
			return fmt.Errorf("there are two groups of priority %d", g.Priority)
		}
		seen[g.Priority] = true
	}
	switch {
	case p.Propagation < 0 || p.Propagation > MaxPropagation:
		return fmt.Errorf("the propagation is %v: want 0 to %v", p.Propagation, MaxPropagation)
	case p.Flush < 0:
		return fmt.Errorf("the flush is negative: %v", p.Flush)
	}
	return nil
}
