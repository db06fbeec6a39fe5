package statuspage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// Bounds of a History.
const (
	maxEvents  = 200
	maxPlans   = 500
	maxPoints  = 180     // of each signal: half an hour of one measurement per 10 seconds
	maxMessage = 4 << 10 // bytes of the message of an event, or of a step
)

// A History keeps the last events of an agent, the last plan of each pod, and the last
// measurements of the node, for the page. Its size is bounded. The zero value is ready
// for use. Safe for concurrent use; its methods do not block.
type History struct {
	mu      sync.Mutex   // guards the fields below
	events  []page.Event // oldest first
	plans   map[types.UID]page.Plan
	signals map[eviction.Signal]*page.Signal
	passErr error // of the last eviction pass; nil if it measured the node
}

// Record adds an event; it is a Record function of an agent and its parts. An event that
// equals an earlier one is counted with it, as the newest.
func (h *History) Record(e runtime.Event) {
	now := time.Now()
	added := page.Event{
		First: now, Last: now, Count: 1, Warning: e.Type == v1.EventTypeWarning, Reason: e.Reason,
		Object: objectName(e.Object), Message: truncated(e.Message),
	}
	if e.Object.Kind == "Pod" {
		added.UID = string(e.Object.UID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	earlier := slices.IndexFunc(h.events, func(o page.Event) bool {
		return o.UID == added.UID && o.Object == added.Object && o.Reason == added.Reason && o.Message == added.Message
	})
	switch {
	case earlier >= 0:
		added.First, added.Count = h.events[earlier].First, h.events[earlier].Count+1
		h.events = slices.Delete(h.events, earlier, earlier+1)
	case len(h.events) == maxEvents:
		h.events = slices.Delete(h.events, 0, 1)
	}
	h.events = append(h.events, added)
}

// objectName returns the object of an event: "default/web[main]", "node worker-1".
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

// Synced stores the plan of a pod and its result; it is the cri.Hooks.Synced of a
// cri.Runtime. An empty plan does not replace an earlier one.
func (h *History) Synced(i cri.SyncInfo) {
	uid := i.Pod.UID
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, ok := h.plans[uid]; ok && i.Plan.Empty() {
		last.Looked = i.End
		h.plans[uid] = last
		return
	}
	p := page.Plan{At: i.Begin, Took: i.End.Sub(i.Begin)}
	if !i.Plan.Empty() {
		for step := range strings.SplitSeq(i.Plan.String(), "\n") {
			p.Steps = append(p.Steps, truncated(step))
		}
	}
	for _, a := range i.Result.Actions {
		result := page.Result{Action: string(a.Kind) + " " + a.Target}
		if a.Err != nil {
			result.Err = truncated((&runtime.ActionError{Action: a}).Error())
		}
		p.Results = append(p.Results, result)
	}
	if h.plans == nil {
		h.plans = map[types.UID]page.Plan{}
	}
	if len(h.plans) == maxPlans && h.plans[uid].At.IsZero() {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(h.plans)), func(a, b types.UID) int {
			return cmp.Or(h.plans[a].At.Compare(h.plans[b].At), cmp.Compare(a, b))
		})
		delete(h.plans, oldest)
	}
	h.plans[uid] = p
}

// EvictionPass stores the measurements of a pass; it is the eviction.Hooks.Passed of an
// eviction.Manager.
func (h *History) EvictionPass(result eviction.Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	plan := result.Plan
	if plan == nil {
		h.passErr = err
		return
	}
	h.passErr = nil
	if h.signals == nil {
		h.signals = map[eviction.Signal]*page.Signal{}
	}
	for _, o := range plan.Observations {
		s := h.signals[o.Signal]
		if s == nil {
			s = &page.Signal{Name: string(o.Signal), Unit: unitOf(o.Signal)}
			h.signals[o.Signal] = s
		}
		s.Capacity, s.Met = o.Capacity, ""
		if len(s.Points) == maxPoints {
			s.Points = slices.Delete(s.Points, 0, 1)
		}
		s.Points = append(s.Points, page.Point{At: plan.At, Available: o.Available})
	}
	for _, m := range plan.Met {
		if s := h.signals[m.Threshold.Signal]; s != nil {
			s.Met = "It has been below " + m.Threshold.Value.String() + " for " + max(plan.At.Sub(m.Since), 0).Round(time.Second).String() + "."
		}
	}
}

// unitOf returns the unit of a signal.
func unitOf(s eviction.Signal) page.Unit {
	if strings.HasSuffix(string(s), "inodesFree") || s == eviction.PIDAvailable {
		return page.Count
	}
	return page.Bytes
}

// Retain removes the plan of every pod that keep rejects. Without it, the 500 newest plans are
// kept. It implements podworker.Retainer and returns nil.
func (h *History) Retain(_ context.Context, keep func(types.UID) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.plans, func(uid types.UID, _ page.Plan) bool { return !keep(uid) })
	return nil
}

// lastEvents returns the events, newest first.
func (h *History) lastEvents() []page.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := slices.Clone(h.events)
	slices.Reverse(events)
	return events
}

// lastSignals returns the measurements by name of the signal, with its thresholds, and
// the error of the last pass.
func (h *History) lastSignals(thresholds []eviction.Threshold) (all []page.Signal, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.signals {
		signal := *s
		signal.Points = slices.Clone(s.Points)
		for _, t := range thresholds {
			if t.Signal == name {
				signal.Lines = append(signal.Lines, page.Line{At: t.Value.Of(s.Capacity), Text: t.Value.String(), Soft: !t.Hard(), Wait: t.GracePeriod})
			}
		}
		all = append(all, signal)
	}
	slices.SortFunc(all, func(a, b page.Signal) int { return cmp.Compare(a.Name, b.Name) })
	return all, h.passErr
}

// lastPlan returns the last plan of a pod.
func (h *History) lastPlan(uid types.UID) page.Plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.plans[uid]
}

// truncated returns the first maxMessage bytes of s, without keeping all of s in memory.
func truncated(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(strings.Clone(s[:maxMessage]), "")
}
