package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
	pages "github.com/kubeparts/kubeparts/examples/kubelet/page"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// How much is remembered for people.
const (
	mostEvents  = 200
	mostPoints  = 180     // of each signal: half an hour, a look each ten seconds
	mostMessage = 4 << 10 // bytes of an event, or of a step
)

// recent is what the page for people tells of the past: the last events, the last
// plan of each pod, and what was available of the node. All of it is bounded.
type recent struct {
	mu      sync.Mutex    // guards the fields below
	events  []pages.Event // oldest first
	plans   map[types.UID]pages.Plan
	signals map[eviction.Signal]*pages.Signal
	unseen  error // why the node could not be measured last
}

// beside returns who is told of events, and remembers them.
func (r *recent) beside(next func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		r.happened(e, time.Now())
		next(e)
	}
}

// happened remembers an event. One that happens again is remembered once, as the
// last.
func (r *recent) happened(e runtime.Event, now time.Time) {
	seen := pages.Event{
		First: now, Last: now, Count: 1, Warning: e.Type == v1.EventTypeWarning, Reason: e.Reason,
		Object: objectName(e.Object), Message: firstBytes(e.Message),
	}
	if e.Object.Kind == "Pod" {
		seen.UID = string(e.Object.UID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	again := slices.IndexFunc(r.events, func(o pages.Event) bool {
		return o.UID == seen.UID && o.Object == seen.Object && o.Reason == seen.Reason && o.Message == seen.Message
	})
	switch {
	case again >= 0:
		seen.First, seen.Count = r.events[again].First, r.events[again].Count+1
		r.events = slices.Delete(r.events, again, again+1)
	case len(r.events) == mostEvents:
		r.events = slices.Delete(r.events, 0, 1)
	}
	r.events = append(r.events, seen)
}

// objectName says what an event is about: "default/web[main]", "node worker-1".
func objectName(o v1.ObjectReference) string {
	if o.Kind != "Pod" {
		return strings.ToLower(o.Kind) + " " + o.Name
	}
	name := o.Namespace + "/" + o.Name
	if _, container, ok := strings.Cut(o.FieldPath, "{"); ok {
		name += "[" + strings.TrimSuffix(container, "}") + "]"
	}
	return name
}

// planned remembers what was done for a pod. That nothing was to be done replaces
// no plan: people ask what was done last.
func (r *recent) planned(i cri.SyncInfo) {
	uid := i.Pod.UID
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.plans[uid]; ok && i.Plan.Empty() {
		last.Looked = i.End
		r.plans[uid] = last
		return
	}
	p := pages.Plan{At: i.Begin, Took: i.End.Sub(i.Begin)}
	if !i.Plan.Empty() {
		for step := range strings.SplitSeq(i.Plan.String(), "\n") {
			p.Steps = append(p.Steps, firstBytes(step))
		}
	}
	for _, a := range i.Result.Actions {
		result := pages.Result{Action: string(a.Kind) + " " + a.Target}
		if a.Err != nil {
			result.Err = firstBytes((&runtime.ActionError{Action: a}).Error())
		}
		p.Results = append(p.Results, result)
	}
	if r.plans == nil {
		r.plans = map[types.UID]pages.Plan{}
	}
	r.plans[uid] = p
}

// prune forgets the plans of pods that are gone.
func (r *recent) prune(keep func(types.UID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.plans, func(uid types.UID, _ pages.Plan) bool { return !keep(uid) })
}

// measured remembers what a pass has seen of the node.
func (r *recent) measured(thresholds []eviction.Threshold) func(eviction.PassInfo) {
	return func(i eviction.PassInfo) {
		if i.Result.Plan != nil {
			r.saw(i.Result.Plan, thresholds)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unseen = i.Err
	}
}

func (r *recent) saw(plan *eviction.Plan, thresholds []eviction.Threshold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unseen = nil
	if r.signals == nil {
		r.signals = map[eviction.Signal]*pages.Signal{}
	}
	for _, o := range plan.Observations {
		s := r.signals[o.Signal]
		if s == nil {
			s = &pages.Signal{Name: string(o.Signal), Unit: unitOf(o.Signal)}
			r.signals[o.Signal] = s
		}
		s.Capacity, s.Met, s.Lines = o.Capacity, "", nil
		for _, t := range thresholds {
			if t.Signal == o.Signal {
				s.Lines = append(s.Lines, pages.Line{At: t.Value.Of(o.Capacity), Text: t.Value.String(), Soft: !t.Hard(), Wait: t.GracePeriod})
			}
		}
		if len(s.Points) == mostPoints {
			s.Points = slices.Delete(s.Points, 0, 1)
		}
		s.Points = append(s.Points, pages.Point{At: plan.At, Available: o.Available})
	}
	for _, m := range plan.Met {
		if s := r.signals[m.Threshold.Signal]; s != nil {
			s.Met = "It has been below " + m.Threshold.Value.String() + " for " + max(plan.At.Sub(m.Since), 0).Round(time.Second).String() + "."
		}
	}
}

// unitOf is what a signal counts.
func unitOf(s eviction.Signal) pages.Unit {
	if strings.HasSuffix(string(s), "inodesFree") || s == eviction.PIDAvailable {
		return pages.Count
	}
	return pages.Bytes
}

// history returns all of it but the plans; events are newest first. The error is why
// the newest signals are missing.
func (r *recent) history() (events []pages.Event, signals []pages.Signal, unseen error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events = slices.Clone(r.events)
	slices.Reverse(events)
	for _, s := range r.signals {
		shown := *s
		shown.Points = slices.Clone(s.Points)
		signals = append(signals, shown)
	}
	slices.SortFunc(signals, func(a, b pages.Signal) int { return cmp.Compare(a.Name, b.Name) })
	return events, signals, r.unseen
}

// plan returns the last one of a pod.
func (r *recent) plan(uid types.UID) pages.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plans[uid]
}

// firstBytes is a copy of its own, which does not keep all of s in memory.
func firstBytes(s string) string {
	if len(s) <= mostMessage {
		return s
	}
	return strings.ToValidUTF8(strings.Clone(s[:mostMessage]), "")
}
