package eviction

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Inputs are the inputs of a plan. Equal inputs give equal plans; the order of Pods does not
// matter.
type Inputs struct {
	Policy Policy
	Now    time.Time

	// Summary is the usage of the node and its pods. Signals that it lacks are not
	// observed; if it is nil, none is.
	Summary *statsapi.Summary

	// Partial is true if a part of Summary could not be measured. A pod whose usage is
	// missing is then not evicted; with a complete summary it is evicted first.
	Partial bool

	// Memory measures memory.available. If nil, Summary does.
	Memory *Observation

	// The devices of the node's root directory, of images, and of the writable layers of
	// containers: equal names are the same file system. If all are empty, file systems of
	// equal capacity and number of inodes are taken to be the same one.
	RootDevice, ImageDevice, LayerDevice string

	// Pods are the pods that may use resources of the node.
	Pods []*v1.Pod

	// Last is the previous plan. Nil before the first.
	Last *Plan

	// KillBackoff are the pods whose kill failed recently. They are not evicted.
	KillBackoff []types.UID

	// ImageBytes is the size of each pod's images in bytes. It is used where images have a
	// file system of their own.
	ImageBytes map[types.UID]int64

	// layout of the file systems, once it has been determined.
	layout *layout
}

// A Plan is the result of evaluating a node: its conditions, and the actions to take with
// their reasons.
type Plan struct {
	At           time.Time
	Observations []Observation

	// Invalid are the impossible measurements. They are not evaluated.
	Invalid []Observation

	// Met are the thresholds that are met, including those that wait for their grace period
	// and those with stale measurements. The chosen one is first, then the others that
	// require action.
	Met []MetThreshold

	// Conditions are the node conditions that are true, sorted.
	Conditions []v1.NodeConditionType

	// Local are the evictions of pods that exceed the limits of their own local storage.
	// They come first, and if one is carried out nothing else is done.
	Local []Victim

	// Chosen is the threshold that is acted on. Nil if none is.
	Chosen *MetThreshold

	// Steps reclaim disk space before pods are evicted: "DeleteAllUnusedContainers"
	// and "DeleteUnusedImages", the methods of [Disks].
	Steps []string

	// Ranking are all pods, the first to be evicted first. Some may be exempt.
	Ranking []Candidate

	// Victims is how many pods of the ranking are to be evicted, not counting exempt ones.
	Victims int

	state planState // the input of the next plan

	// in are the inputs, without Last. Without a Chosen threshold, those that After uses.
	in Inputs
}

// Plan evaluates the inputs. It is a pure function and does not modify them.
func (in Inputs) Plan() *Plan {
	layout := in.fileSystems()
	in.layout = &layout
	var last planState
	if in.Last != nil {
		last, in.Last = in.Last.state, nil // not a chain of all plans
	}
	p := &Plan{At: in.Now, in: Inputs{Policy: in.Policy}}
	p.Observations, p.Invalid = observe(in.Summary, in.Memory, in.Policy.MachineMemory)
	p.Met, p.state = evaluate(layout.withContainerFS(in.Policy.Thresholds), p.Observations, last, in.Now)
	p.Conditions = in.Policy.conditions(p.Met, &p.state, in.Now)
	if !in.Policy.NoLocalLimits {
		p.Local = in.overLimits()
	}
	sortMet(p.Met)
	if len(p.Met) == 0 || !p.Met[0].Acts() {
		return p
	}
	p.in = in
	p.choose(p.Met[0])
	p.Steps = layout.steps(p.Chosen.Threshold.Signal)
	return p
}

// After returns the plan after Steps were taken, with a new summary, and memory as in
// Inputs. Its Chosen is nil if the chosen signal has recovered; otherwise the pods are
// ranked with the new measurements. The state of the thresholds is not changed.
func (p *Plan) After(summary *statsapi.Summary, memory *Observation) *Plan {
	return p.after(summary, memory, false)
}

func (p *Plan) after(summary *statsapi.Summary, memory *Observation, partial bool) *Plan {
	in := p.in
	in.Summary, in.Memory, in.Partial = summary, memory, partial
	next := &Plan{At: p.At, Conditions: p.Conditions, state: p.state, in: in}
	next.Observations, next.Invalid = observe(summary, memory, in.Policy.MachineMemory)
	if p.Chosen == nil {
		return next
	}
	chosen := p.Chosen.Threshold
	unresolved := func(m MetThreshold) bool {
		return m.Acts() && in.layout.related(chosen.Signal, m.Threshold.Signal)
	}
	for _, m := range p.Met {
		o, ok := find(next.Observations, m.Threshold.Signal)
		if !ok || !m.Threshold.met(o, true) {
			continue
		}
		m.Observation, m.Stale = o, false
		m.Deficit = sub(m.Threshold.target(o.Capacity, true), o.Available)
		next.Met = append(next.Met, m)
	}
	sortMet(next.Met)
	// The chosen threshold if it is still met, otherwise the first related one.
	i := slices.IndexFunc(next.Met, func(m MetThreshold) bool { return unresolved(m) && m.Threshold.equal(chosen) })
	if i < 0 {
		i = slices.IndexFunc(next.Met, unresolved)
	}
	if i >= 0 {
		next.choose(next.Met[i])
	}
	return next
}

// outdated reports whether the chosen threshold of a plan after steps is met by a
// measurement that precedes their end at done, or by that of the first plan.
func (p *Plan) outdated(first *Plan, done time.Time) bool {
	if p.Chosen == nil || p.Chosen.At.IsZero() {
		return false
	}
	before, ok := find(first.Observations, p.Chosen.Threshold.Signal)
	return ok && p.Chosen.At.Equal(before.At) || p.Chosen.At.Before(done)
}

func (p *Plan) choose(m MetThreshold) {
	p.Chosen = &m
	p.Ranking = p.in.ranking(m.Threshold.Signal)
	p.Victims = p.victims()
}

// victims returns how many pods must be evicted for their estimated usage to cover the
// deficit, at most Policy.MaxVictims.
func (p *Plan) victims() (n int) {
	most := cmp.Or(p.in.Policy.MaxVictims, 1)
	freed := int64(0)
	for i := range p.Ranking {
		if n == most || n > 0 && freed >= p.Chosen.Deficit {
			break
		}
		if p.Ranking[i].Exempt == "" {
			n, freed = n+1, add(freed, p.Ranking[i].Usage)
		}
	}
	return n
}

// sortMet puts the thresholds that require action first, memory before others, then by
// deficit relative to the capacity.
func sortMet(met []MetThreshold) {
	slices.SortStableFunc(met, func(a, b MetThreshold) int {
		return cmp.Or(
			falseFirst(!a.Acts(), !b.Acts()),
			falseFirst(!a.Threshold.Signal.isMemory(), !b.Threshold.Signal.isMemory()),
			cmp.Compare(b.severity(), a.severity()),
			cmp.Compare(a.Threshold.Signal.index(), b.Threshold.Signal.index()),
			falseFirst(!a.Threshold.Hard(), !b.Threshold.Hard()),
		)
	})
}

// severity returns the deficit as a fraction of the capacity.
func (m *MetThreshold) severity() float64 { return float64(m.Deficit) / float64(m.Capacity) }
