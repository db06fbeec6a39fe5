package podworker

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Forget removes the worker of a finished pod and reports whether it did. restart is set if
// a source added the pod again while it was terminating, so that it has to be started again;
// pod is its last spec, nil for an orphan.
func (w *Workers) Forget(uid types.UID) (pod *v1.Pod, restart, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgetLocked(uid)
}

func (w *Workers) forgetLocked(uid types.UID) (pod *v1.Pod, restart, ok bool) {
	p, ok := w.pods[uid]
	if !ok || p.lifecycle.state != Finished || p.running {
		return nil, false, false
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	delete(w.pods, uid)
	delete(w.settled, uid)
	w.table.removeWorker(uid)
	now := time.Now()
	maps.DeleteFunc(w.changedAt, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keepChangedAt })
	if !p.changedAt.IsZero() {
		w.changedAt[uid] = p.changedAt
	}
	if r := p.lifecycle.restart; r != nil && r.kill != nil {
		w.restartKills[uid] = *r.kill
	}
	return p.lifecycle.pod, p.lifecycle.restart != nil, true
}

// forgetSettled forgets a pod that has finished and is not desired, or that starts again.
func (w *Workers) forgetSettled(uid types.UID, desired bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; !ok || desired && p.lifecycle.restart == nil {
		return false
	}
	_, _, ok := w.forgetLocked(uid)
	return ok
}

// takeSettled returns the pods that have finished since the last call, or have changed after
// that.
func (w *Workers) takeSettled() []types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	uids := slices.Sorted(maps.Keys(w.settled))
	clear(w.settled)
	return uids
}

// row returns the row of the [Table] for the pod with that UID.
func (l *lifecycle) row(uid types.UID) workerState {
	return workerState{
		PodState:  PodState{UID: uid, Pod: l.pod, State: l.state, Removed: l.end == removed},
		removable: l.end > kept && l.state >= Cleaning,
	}
}

// terminating reports whether the first static pod of that name is being terminated.
func (w *Workers) terminating(fullName string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[w.names.first(fullName)]
	return ok && (p.lifecycle.state == Stopping || p.lifecycle.state == Terminating)
}
