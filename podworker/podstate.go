package podworker

import (
	"maps"
	"slices"
	"strings"
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
	now := time.Now()
	maps.DeleteFunc(w.changedAt, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keepChangedAt })
	if !p.changedAt.IsZero() {
		w.changedAt[uid] = p.changedAt
	}
	if p.lifecycle.restartKill != nil {
		w.restartKills[uid] = *p.lifecycle.restartKill
	}
	return p.lifecycle.pod, p.lifecycle.restart, true
}

// forgetSettled forgets a pod that is not desired, or that starts again.
func (w *Workers) forgetSettled(uid types.UID, desired bool) (pod *v1.Pod, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; !ok || desired && !p.lifecycle.restart {
		return nil, false
	}
	pod, _, ok = w.forgetLocked(uid)
	return pod, ok
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

// State returns the state of the pod; false if it has no worker.
func (w *Workers) State(uid types.UID) (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return 0, false
	}
	return p.lifecycle.state, true
}

// Removable reports whether the resources of a pod may be removed: it was evicted or
// deleted, and its containers have terminated. The kubelet removes those of an evicted pod
// during its grace period; this would kill processes in its cgroup and assign its devices
// to other pods early. ok is false if the pod has no worker.
func (w *Workers) Removable(uid types.UID) (removable, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return false, false
	}
	return (p.lifecycle.evicted || p.lifecycle.deleted) && p.lifecycle.state >= Cleaning, true
}

// terminating reports whether the first static pod of that name is being terminated.
func (w *Workers) terminating(fullName string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[w.names.first(fullName)]
	return ok && (p.lifecycle.state == Stopping || p.lifecycle.state == Terminating)
}

// A PodState is the state of a pod with its spec.
type PodState struct {
	UID types.UID

	// Pod is nil if no source ever specified the pod and only the runtime reports it. It
	// is shared and must not be changed.
	Pod   *v1.Pod
	State State

	// Removed: no source specifies the pod any more.
	Removed bool
}

// States returns the state of every pod that has a worker, by UID.
func (w *Workers) States() []PodState {
	w.mu.Lock()
	defer w.mu.Unlock()
	states := make([]PodState, 0, len(w.pods))
	for uid, p := range w.pods {
		states = append(states, PodState{UID: uid, Pod: p.lifecycle.pod, State: p.lifecycle.state, Removed: p.lifecycle.removed})
	}
	slices.SortFunc(states, func(a, b PodState) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return states
}
