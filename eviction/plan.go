package eviction

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Inputs are all that a plan is made from. Equal inputs give equal plans; the
// order of Pods does not matter.
type Inputs struct {
	Policy Policy
	Now    time.Time

	// Summary is what was measured. What is missing in it is not observed; nil:
	// nothing is.
	Summary *statsapi.Summary

	// Partial: a part of the summary could not be had. What a pod lacks in it is then
	// no sign of the pod, which is not evicted for what it is not known to use; it is
	// with a whole one (ev-41).
	Partial bool

	// Memory, if it is not nil, is what memory.available goes by (F-16).
	Memory *MemoryFigure

	// MachineMemory is how much memory the node has, in bytes: a use of more is
	// not believed. Zero: not known.
	MachineMemory int64

	// Layout is which file systems there are.
	Layout Layout

	// Pods are those that may hold something of the node.
	Pods []*v1.Pod

	// State is what the last plan's was.
	State State

	// Spared are the pods that somebody has asked to spare (F-24).
	Spared map[types.UID]Spare

	// Held are the pods that are not tried again yet (F-22).
	Held []types.UID

	// ImageBytes is how much the images of a pod take, which no summary tells.
	// It counts where images have a file system of their own (F-23).
	ImageBytes map[types.UID]int64

	// Random chooses among signals, where Policy.Compat.RandomSignal leaves that
	// to chance.
	Random uint64
}

// A Spare asks for a pod to be spared.
type Spare struct {
	Reason string // not empty

	// Absolute: rather the kernel ends something than this pod is evicted.
	// Otherwise it goes after all others.
	Absolute bool
}

// A Plan is what is to be done about a node, and why.
type Plan struct {
	At           time.Time
	Observations []Observation
	Invalid      []Invalid // signals whose figures cannot be true

	// Met are the thresholds that are met, those that wait for their grace
	// period and those whose figures are old included; the chosen one first,
	// of those that are to be acted on.
	Met []Met

	// Conditions are those of the node that are true, sorted.
	Conditions []v1.NodeConditionType

	// Local are the pods that exceed the limits of their own local storage.
	// They go at once, and if any goes nothing else is done (ev-23).
	Local []Eviction

	// Chosen is the threshold that is acted on; nil: none (ev-24).
	Chosen *Met

	// Steps are tried before pods are evicted (ev-26).
	Steps []Step

	// Ranking are all pods, the one that goes first at the front. Some may be
	// refused.
	Ranking []Rank

	// Victims is how many of the ranking are to go, those left out that are
	// refused.
	Victims int

	// State is for the next plan.
	State State

	in Inputs
}

// Plan says what is to be done. It is a pure function, and changes nothing that
// it is given.
func (in Inputs) Plan() *Plan {
	p := &Plan{At: in.Now, in: in}
	p.Observations, p.Invalid = Observe(in.Summary, in.Memory, in.MachineMemory)
	p.Met, p.State = evaluate(in.Layout.withContainerFS(in.Policy.Thresholds), p.Observations, in.State, in.Now)
	p.Conditions = in.Policy.conditions(p.Met, &p.State, in.Now)
	if !in.Policy.NoLocalLimits {
		p.Local = in.overLimits()
	}
	in.order(p.Met)
	if len(p.Met) == 0 || !p.Met[0].acts() {
		return p
	}
	p.choose(p.Met[0])
	p.Steps = in.Layout.steps(p.Chosen.Threshold.Signal)
	return p
}

// After is the plan's second look, when Steps have been done: with a new summary,
// and memory as in Inputs. If the chosen signal has recovered its Chosen is nil
// (ev-26); otherwise the pods are ranked by the new figures. What is known of
// thresholds does not change by it.
func (p *Plan) After(summary *statsapi.Summary, memory *MemoryFigure) *Plan {
	return p.after(summary, memory, false)
}

func (p *Plan) after(summary *statsapi.Summary, memory *MemoryFigure, partial bool) *Plan {
	in := p.in
	in.Summary, in.Memory, in.Partial = summary, memory, partial
	next := &Plan{At: p.At, Conditions: p.Conditions, State: p.State, in: in}
	next.Observations, next.Invalid = Observe(summary, memory, in.MachineMemory)
	if p.Chosen == nil {
		return next
	}
	chosen := p.Chosen.Threshold
	candidates := slices.Clone(p.Met)
	if in.Policy.Compat.AnyThreshold {
		candidates = nil
		for _, t := range in.Layout.withContainerFS(in.Policy.Thresholds) {
			candidates = append(candidates, Met{Threshold: t})
		}
	}
	unresolved := false
	for _, m := range candidates {
		o, ok := find(next.Observations, m.Threshold.Signal)
		if !ok || !m.Threshold.met(o, true) {
			continue
		}
		m.Observation, m.Stale = o, false
		m.Deficit = sub(m.Threshold.target(o.Capacity, true), o.Available)
		next.Met = append(next.Met, m)
		unresolved = unresolved || in.Policy.Compat.AnyThreshold || m.acts() && in.Layout.together(chosen.Signal, m.Threshold.Signal)
	}
	if !unresolved {
		return next
	}
	// The one that was chosen, if it is still met; else the worst of its kind.
	m := *p.Chosen
	if i := slices.IndexFunc(next.Met, func(m Met) bool { return m.Threshold.same(chosen) }); i >= 0 {
		m = next.Met[i]
	} else if !in.Policy.Compat.AnyThreshold {
		in.order(next.Met)
		i := slices.IndexFunc(next.Met, func(m Met) bool { return m.acts() && in.Layout.together(chosen.Signal, m.Threshold.Signal) })
		m = next.Met[i]
	}
	next.choose(m)
	return next
}

// old reports whether a second look found its reason in a measurement that does not
// tell of what was done since the first: that of the first, or one from before it was
// done.
func (p *Plan) old(first *Plan, done time.Time) bool {
	if p.Chosen == nil || p.Chosen.At.IsZero() {
		return false
	}
	before, ok := find(first.Observations, p.Chosen.Threshold.Signal)
	return ok && p.Chosen.At.Equal(before.At) || p.Chosen.At.Before(done)
}

// choose sets on whom it falls.
func (p *Plan) choose(m Met) {
	p.Chosen = &m
	p.Ranking = p.in.ranking(m.Threshold.Signal)
	p.Victims = p.needed()
}

// needed is how many pods have to go for what they are estimated to give back to
// cover the deficit, and no more than the policy allows (F-20).
func (p *Plan) needed() (n int) {
	most := cmp.Or(p.in.Policy.MaxVictims, 1)
	freed := int64(0)
	for i := range p.Ranking {
		if n == most || n > 0 && freed >= p.Chosen.Deficit {
			break
		}
		if p.Ranking[i].Refused == "" {
			n, freed = n+1, add(freed, p.Ranking[i].Usage)
		}
	}
	return n
}

// order puts first what is acted on, and of that memory (ev-24), then what lacks
// most of its capacity (F-19). Signals without a resource cannot be in it.
func (in *Inputs) order(met []Met) {
	if n := len(met); n > 0 && in.Policy.Compat.RandomSignal {
		// Any of them may come first: as a map's order would have it.
		by := int(in.Random % uint64(n))
		rotated := slices.Concat(met[by:], met[:by])
		copy(met, rotated)
	}
	slices.SortStableFunc(met, func(a, b Met) int {
		by := cmp.Or(
			last(!a.acts(), !b.acts()),
			last(!a.Threshold.Signal.isMemory(), !b.Threshold.Signal.isMemory()),
		)
		if by != 0 || in.Policy.Compat.RandomSignal {
			return by
		}
		return cmp.Or(
			cmp.Compare(severity(b), severity(a)),
			cmp.Compare(a.Threshold.Signal.place(), b.Threshold.Signal.place()),
			last(!a.Threshold.Hard(), !b.Threshold.Hard()),
		)
	})
}

// severity is how much is lacking, as a part of the capacity.
func severity(m Met) float64 { return float64(m.Deficit) / float64(m.Capacity) }
