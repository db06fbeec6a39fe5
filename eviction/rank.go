package eviction

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A Comparator is one thing by which two pods are put in order.
type Comparator string

// The comparators. The last three are beyond the kubelet, which leaves to chance
// what comes after the others.
const (
	BySpared   Comparator = "spared"              // one that is vetoed goes after one that is not
	ByPolicy   Comparator = "policy"              // Policy.Order
	ByStats    Comparator = "stats"               // one without stats goes first (ev-41), one that could not be measured last
	ByExceeds  Comparator = "usage above request" // goes first
	ByPriority Comparator = "priority"            // the lower goes first
	ByUsage    Comparator = "excess"              // of usage over request; the larger goes first
	ByCount    Comparator = "processes"           // the larger goes first
	ByAge      Comparator = "age"                 // the younger goes first
	ByName     Comparator = "name"
)

// A Rank is what a pod's place is decided by.
type Rank struct {
	Pod *v1.Pod `json:"-"`

	// NoStats: nothing is known of what it uses.
	NoStats bool `json:"noStats,omitempty"`
	// Unmeasured: that is so because the measuring failed ([Inputs].Partial). It is
	// refused.
	Unmeasured bool `json:"unmeasured,omitempty"`
	// Usage and Request of the resource that is low, in bytes, inodes or
	// processes.
	Usage   int64 `json:"usage"`
	Request int64 `json:"request"`
	// Excess is what counts as used above the request.
	Excess   int64 `json:"excess"`
	Priority int32 `json:"priority"`
	// Created is when the pod was made.
	Created time.Time `json:"created"`

	// Spared is why it goes last, by [Inputs.Spared].
	Spared string `json:"spared,omitempty"`
	// Refused is why it does not go at all: it is critical, or spared
	// absolutely, or a kill of it has just failed. The next one goes in its
	// place.
	Refused string `json:"refused,omitempty"`

	// Decided is what put it before the one that comes next. Empty: it is the
	// last.
	Decided Comparator `json:"decided,omitempty"`
}

// exceeds reports whether the pod uses more than it asked for.
func (r *Rank) exceeds() bool { return r.Usage > r.Request }

// ranking returns the pods of in, the one that goes first for s at the front
// (section 2.5). It is a total order, of which each pair depends on those two
// pods alone.
func (in *Inputs) ranking(s Signal) []Rank {
	stats, usage := index(in.Summary), in.usage(s)
	ranks := make([]Rank, 0, len(in.Pods))
	for _, pod := range in.Pods {
		if pod == nil {
			continue
		}
		ranks = append(ranks, in.rank(pod, stats[pod.UID], usage, s))
	}
	order := comparators(s)
	own := func(a, b *Rank) int {
		if in.Policy.Order == nil {
			return 0
		}
		return in.Policy.Order(s, a, b)
	}
	slices.SortFunc(ranks, func(a, b Rank) int {
		n, _ := compare(&a, &b, order, own)
		return n
	})
	for i := range len(ranks) - 1 {
		_, ranks[i].Decided = compare(&ranks[i], &ranks[i+1], order, own)
	}
	return ranks
}

const unmeasuredText = "what it uses could not be measured"

func (in *Inputs) rank(pod *v1.Pod, stats *statsapi.PodStats, usage usageOf, s Signal) Rank {
	res := s.Resource()
	r := Rank{Pod: pod, NoStats: stats == nil, Usage: usage(pod, stats), Created: pod.CreationTimestamp.Time}
	if pod.Spec.Priority != nil { // ev-45
		r.Priority = *pod.Spec.Priority
	}
	if res != resourcePIDs { // ev-38
		r.Request = request(pod, res)
	}
	r.Excess = sub(r.Usage, r.Request)
	if res == resourceInodes && in.Policy.Compat.InodesLessBytes {
		r.Excess = sub(r.Usage, request(pod, v1.ResourceEphemeralStorage)) // ev-40
	}
	if why, ok := in.Spared[pod.UID]; ok {
		if r.Spared = why.Reason; why.Absolute {
			r.Refused = "spared: " + why.Reason
		}
	}
	if in.Partial && !in.measured(s, stats) {
		r.NoStats, r.Unmeasured, r.Refused = true, true, unmeasuredText
	}
	if in.held(pod) {
		r.Refused = heldText
	}
	if in.Policy.critical(pod) {
		r.Refused = "it is critical"
	}
	return r
}

func comparators(s Signal) []Comparator {
	if s.Resource() == resourcePIDs {
		return []Comparator{BySpared, ByPolicy, ByPriority, ByStats, ByCount, ByAge, ByName}
	}
	return []Comparator{BySpared, ByPolicy, ByStats, ByExceeds, ByPriority, ByUsage, ByAge, ByName}
}

// compare orders two pods, and returns the comparator that decided. own is ByPolicy.
func compare(a, b *Rank, order []Comparator, own func(a, b *Rank) int) (int, Comparator) {
	for _, by := range order {
		n := 0
		if by == ByPolicy {
			n = own(a, b)
		} else {
			n = by.compare(a, b)
		}
		if n != 0 {
			return n, by
		}
	}
	return 0, ""
}

func (c Comparator) compare(a, b *Rank) int {
	switch c {
	case BySpared:
		return last(a.Spared != "", b.Spared != "")
	case ByStats:
		return cmp.Or(last(a.Unmeasured, b.Unmeasured), -last(a.NoStats, b.NoStats))
	case ByExceeds:
		return -last(!a.NoStats && a.exceeds(), !b.NoStats && b.exceeds())
	case ByPriority:
		return cmp.Compare(a.Priority, b.Priority)
	case ByUsage, ByCount:
		if a.NoStats || b.NoStats { // then both are: they are equal in that (ev-41)
			return 0
		}
		return cmp.Compare(b.Excess, a.Excess)
	case ByAge:
		return b.Created.Compare(a.Created)
	default:
		return cmp.Or(
			cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
			cmp.Compare(a.Pod.Name, b.Pod.Name),
			cmp.Compare(a.Pod.UID, b.Pod.UID),
		)
	}
}

// last puts what is true after what is not.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
