package eviction

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A Candidate is a pod with the values that it is ranked by.
type Candidate struct {
	Pod       *v1.Pod   `json:"-"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`

	// NoStats is true if the usage of the pod is unknown.
	NoStats bool `json:"noStats,omitempty"`
	// Unmeasured is true if the summary has the pod, but lacks its usage of the resource,
	// which then counts as zero, or if the measurement failed ([Inputs].Partial), which
	// makes the pod exempt.
	Unmeasured bool `json:"unmeasured,omitempty"`
	// Usage and Request are amounts of the resource that is low, in bytes, inodes or
	// processes.
	Usage   int64 `json:"usage"`
	Request int64 `json:"request"`
	// Excess is Usage less Request. It may be negative.
	Excess   int64     `json:"excess"`
	Priority int32     `json:"priority"`
	Created  time.Time `json:"created"` // the pod's creation timestamp

	// Spared is the reason why the pod is ranked last, from [Policy.Spare].
	Spared string `json:"spared,omitempty"`
	// Exempt is the reason why the pod is not evicted: it is critical, spared absolutely,
	// could not be measured, or its kill failed recently. The next pod is evicted instead.
	Exempt string `json:"exempt,omitempty"`

	// RankReason is the reason why the pod precedes the next one. Empty for the last.
	RankReason string `json:"rankReason,omitempty"`
}

// The reasons of rankings. The kubelet leaves the order of pods that the others do not
// decide, by age and by name, to chance.
const (
	bySpare    = "spared"
	byCustom   = "custom rank"
	byStats    = "stats"
	byExceeds  = "usage above request"
	byPriority = "priority"
	byExcess   = "excess"
	byCount    = "processes"
	byAge      = "age"
	byName     = "name"
)

// defaultRank ranks pods as the kubelet does; see Policy.Rank.
func defaultRank(s Signal, a, b *Candidate) (order int, reason string) {
	comparators := resourceComparators
	if s.Resource() == resourcePIDs {
		comparators = pidComparators
	}
	for i := range comparators {
		if order := comparators[i].compare(a, b); order != 0 {
			return order, comparators[i].reason
		}
	}
	return 0, ""
}

// A comparator is negative if a is evicted before b.
type comparator struct {
	reason  string
	compare func(a, b *Candidate) int
}

var (
	resourceComparators = []comparator{{byStats, compareStats}, {byExceeds, compareExceeds}, {byPriority, comparePriority}, {byExcess, compareExcess}, {byAge, compareAge}, {byName, compareName}}
	pidComparators      = []comparator{{byPriority, comparePriority}, {byStats, compareStats}, {byCount, compareExcess}, {byAge, compareAge}, {byName, compareName}}
)

func compareStats(a, b *Candidate) int {
	failed := func(c *Candidate) bool { return c.Unmeasured && c.NoStats }
	return cmp.Or(falseFirst(failed(a), failed(b)), falseFirst(!a.NoStats, !b.NoStats))
}

func compareExceeds(a, b *Candidate) int { return falseFirst(!a.exceeds(), !b.exceeds()) }

func comparePriority(a, b *Candidate) int { return cmp.Compare(a.Priority, b.Priority) }

func compareExcess(a, b *Candidate) int {
	if a.NoStats || b.NoStats { // then both lack stats, which makes them equal
		return 0
	}
	return cmp.Compare(b.Excess, a.Excess)
}

func compareAge(a, b *Candidate) int { return b.Created.Compare(a.Created) }

func compareName(a, b *Candidate) int {
	return cmp.Or(
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
		cmp.Compare(a.Pod.Name, b.Pod.Name),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
}

// exceeds reports whether the measured usage of the pod exceeds its request.
func (c *Candidate) exceeds() bool { return !c.NoStats && c.Usage > c.Request }

// falseFirst orders false before true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// ranking returns the pods of in for a signal, the first to be evicted first.
func (in *Inputs) ranking(s Signal) []Candidate {
	stats, usage := statsByUID(in.Summary), in.usage(s)
	candidates := make([]Candidate, 0, len(in.Pods))
	for _, pod := range in.Pods {
		if pod != nil {
			candidates = append(candidates, in.candidate(pod, stats[pod.UID], usage, s))
		}
	}
	sorted := make([]*Candidate, len(candidates)) // by pointer: they are large
	for i := range candidates {
		sorted[i] = &candidates[i]
	}
	slices.SortFunc(sorted, func(a, b *Candidate) int {
		order, _ := in.compare(s, a, b)
		return order
	})
	ranking := make([]Candidate, len(sorted))
	for i, c := range sorted {
		ranking[i] = *c
		if i+1 < len(sorted) {
			_, ranking[i].RankReason = in.compare(s, c, sorted[i+1])
		}
	}
	return ranking
}

// compare ranks by Spare, then by Rank, then by defaultRank.
func (in *Inputs) compare(s Signal, a, b *Candidate) (int, string) {
	if order := falseFirst(a.Spared != "", b.Spared != ""); order != 0 {
		return order, bySpare
	}
	if in.Policy.Rank != nil {
		if order, reason := in.Policy.Rank(s, a, b); order != 0 {
			return order, cmp.Or(reason, byCustom)
		}
	}
	return defaultRank(s, a, b)
}

// The reasons of Candidate.Exempt.
const (
	exemptCritical   = "critical pod"
	exemptUnmeasured = "usage could not be measured"
	exemptBackoff    = "kill failed recently"
	exemptSpared     = "spared: "
)

func (in *Inputs) candidate(pod *v1.Pod, stats *statsapi.PodStats, usage usageOf, s Signal) Candidate {
	res := s.Resource()
	c := Candidate{
		Pod: pod, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, NoStats: stats == nil, Usage: usage(pod, stats), Created: pod.CreationTimestamp.Time,
		Priority: podspec.Priority(pod),
	}
	if res != resourcePIDs {
		c.Request = request(pod, res)
	}
	c.Excess = sub(c.Usage, c.Request)
	if in.Policy.Spare != nil {
		reason, absolute := in.Policy.Spare(pod)
		if c.Spared = reason; reason != "" && absolute {
			c.Exempt = exemptSpared + reason
		}
	}
	switch measured := in.measured(s, stats); {
	case in.Partial && !measured:
		c.NoStats, c.Unmeasured, c.Exempt = true, true, exemptUnmeasured
	case !measured && stats != nil:
		c.Unmeasured = true
	}
	if in.backedOff(pod) {
		c.Exempt = exemptBackoff
	}
	if in.Policy.critical(pod) {
		c.Exempt = exemptCritical
	}
	return c
}

func (in *Inputs) backedOff(pod *v1.Pod) bool { return slices.Contains(in.KillBackoff, pod.UID) }
