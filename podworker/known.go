package podworker

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Forget drops a pod that is finished, and reports whether it did. again tells
// that the pod was wanted anew while it was ending, so that it has to be
// started over (pw-14, pw-52); pod is its last spec, nil for an orphan.
func (w *Workers) Forget(uid types.UID) (pod *v1.Pod, again, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgetLocked(uid)
}

func (w *Workers) forgetLocked(uid types.UID) (pod *v1.Pod, again, ok bool) {
	p, known := w.pods[uid]
	if !known || p.life.state != Finished || p.running {
		return nil, false, false
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	delete(w.pods, uid)
	delete(w.settled, uid)
	now := time.Now()
	maps.DeleteFunc(w.touched, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keepTouched })
	if !p.touched.IsZero() {
		w.touched[uid] = p.touched
	}
	if p.life.doom != nil {
		w.doomed[uid] = *p.life.doom
	}
	return p.life.pod, p.life.again, true
}

// forget is Forget of a pod that is not wanted, or is wanted anew.
func (w *Workers) forget(uid types.UID, wanted bool) (pod *v1.Pod, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, known := w.pods[uid]; !known || wanted && !p.life.again {
		return nil, false
	}
	pod, _, ok = w.forgetLocked(uid)
	return pod, ok
}

// takeSettled returns the pods that have finished, or of which something was
// heard after that, since it was called last.
func (w *Workers) takeSettled() []types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	uids := slices.Sorted(maps.Keys(w.settled))
	clear(w.settled)
	return uids
}

// Known reports whether the pod has a life here, and how far it has gone.
func (w *Workers) Known(uid types.UID) (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return 0, false
	}
	return p.life.state, true
}

// Removable reports whether nothing of a known pod need be kept: it was evicted or
// deleted, and has stopped (ShouldPodContentBeRemoved in section 2.2, of which the
// kubelet's has an evicted pod's at once: who ends what is left in cgroups, and gives
// its devices to others, must not do so while it has its grace period). Whether an
// unknown pod's need be is for the caller to say.
func (w *Workers) Removable(uid types.UID) (removable, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return false, false
	}
	return (p.life.evicted || p.life.deleted) && p.life.state >= Cleaning, true
}

// stopping reports whether the static pod whose turn it is under that name has
// been told to end and may still run.
func (w *Workers) stopping(fullName string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[w.turns.first(fullName)]
	return ok && (p.life.state == Stopping || p.life.state == Terminating)
}

// A PodState tells how a pod's life stands, for people.
type PodState struct {
	UID   types.UID
	Pod   *v1.Pod // nil for an orphan; shared, don't change it
	State State

	// Busy: a call of the Handler is in flight.
	Busy bool

	// Due is when the next call will be made if nothing happens before. Zero:
	// when something happens.
	Due time.Time

	// Err of the last call, nil if it succeeded.
	Err error

	// GracePeriodSeconds left once it is stopping, else nil.
	GracePeriodSeconds *int64
}

// A Count is how many pods are in a State (kubelet_working_pods, met-1).
type Count struct {
	State State

	// Config is "desired", "orphan" (no source wants it any more) or
	// "runtime_only" (it was never wanted).
	Config string

	Static bool
}

// Counts returns how many pods there are of each kind that there is.
func (w *Workers) Counts() map[Count]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[Count]int{}
	for _, p := range w.pods {
		c := Count{State: p.life.state, Config: "desired"}
		switch {
		case p.life.orphan != nil:
			c.Config = "runtime_only"
		case p.life.removed:
			c.Config = "orphan"
		}
		c.Static = p.life.pod != nil && runtime.IsStatic(p.life.pod)
		counts[c]++
	}
	return counts
}

// States returns how every known pod stands, by UID.
func (w *Workers) States() []PodState {
	w.mu.Lock()
	defer w.mu.Unlock()
	states := make([]PodState, 0, len(w.pods))
	for uid, p := range w.pods {
		states = append(states, PodState{
			UID: uid, Pod: p.life.pod, State: p.life.state, Busy: p.running,
			Due: p.next, Err: p.err, GracePeriodSeconds: p.life.grace,
		})
	}
	slices.SortFunc(states, func(a, b PodState) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return states
}
