package podworker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Table holds the pods of one node: those that the sources specify with
// their mirror pods, which a [Loop] writes, and the states of their workers, which [Workers]
// write. It has no goroutines and depends on nothing, so that it is constructed first, and is
// read by the subsystems that the pod workers use and by those that observe them.
//
// It also carries notifications of changed pods against the order of construction, to the
// Loop: pleg.Generator reports changes and is also the StatusCache of the Workers. They are not
// dropped; several for one pod before the Loop takes them count once.
//
// The zero value is ready for use; it has no pods, and its sources have not synced. A Table
// must not be used by two Loops or two Workers. Safe for concurrent use; its methods do not
// block. Pods that they return are shared and must not be changed.
type Table struct {
	// mu guards the fields below. It is locked last.
	mu      sync.Mutex
	opened  bool     // by a Loop
	users   *Workers // that write states; nil: there are none yet
	sources []string
	synced  map[string]bool
	desired podSet
	workers map[types.UID]workerState
	changed map[types.UID]struct{}
	wake    chan<- struct{} // the Loop takes changed; nil: there is none yet
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

// A workerState is a row of the Table that Workers write.
type workerState struct {
	PodState

	// removable: the pod was evicted or deleted, and its containers have terminated. The
	// kubelet removes the resources of an evicted pod during its grace period; this would
	// kill processes in its cgroup and assign its devices to other pods early.
	removable bool
}

// PodChanged notifies the Loop that something about the pod has changed in the runtime, its
// probe results or its allocated resources.
func (t *Table) PodChanged(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = map[types.UID]struct{}{}
	}
	t.changed[uid] = struct{}{}
	if t.wake != nil {
		signal(t.wake)
	}
}

// SyncStatic makes every static pod due, so that their mirror pods are created. It is called
// when the node's object has been created, which changes no pod.
func (t *Table) SyncStatic() {
	for _, pod := range t.Desired() {
		if runtime.IsStatic(pod) {
			t.PodChanged(pod.UID)
		}
	}
}

// Synced reports whether every source of the Loop has synced; false before there is a Loop.
func (t *Table) Synced() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.syncedLocked()
}

// Unsynced returns the sources that have not synced, in the order of LoopConfig.Sources. Until
// all have, pods that none specifies may be those of an unsynced source, and keep running.
func (t *Table) Unsynced() (unsynced []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, source := range t.sources {
		if !t.synced[source] {
			unsynced = append(unsynced, source)
		}
	}
	return unsynced
}

func (t *Table) syncedLocked() bool {
	return t.opened && !slices.ContainsFunc(t.sources, func(source string) bool { return !t.synced[source] })
}

// Desired returns the pods that the sources specify, without mirror pods, by namespace and name.
func (t *Table) Desired() []*v1.Pod {
	t.mu.Lock()
	pods := slices.Collect(maps.Values(t.desired.pods))
	t.mu.Unlock()
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	})
	return pods
}

// Running returns the last specs of the pods that may have running containers, by UID. Orphaned
// pods have none.
func (t *Table) Running() (pods []*v1.Pod) {
	for _, s := range t.States() {
		if s.Pod != nil && s.State < Cleaning {
			pods = append(pods, s.Pod)
		}
	}
	return pods
}

// Pod returns the desired pod with that UID, or whose mirror pod has it, and its mirror pod;
// nil for one that does not exist.
func (t *Table) Pod(uid types.UID) (pod, mirror *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pod = t.desired.pods[t.desired.translate(uid)]; pod == nil {
		return nil, t.desired.mirrors[uid]
	}
	return pod, t.desired.mirrorOf(pod)
}

// PodByName returns the desired pod of that name, of several the one that was updated last;
// nil if there is none.
func (t *Table) PodByName(namespace, name string) *v1.Pod { return t.named(name + "_" + namespace) }

// named is PodByName for a full name.
func (t *Table) named(fullName string) *v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desired.named(fullName)
}

// translateUID returns the UID of the static pod for that of its mirror pod, and any other UID
// unchanged.
func (t *Table) translateUID(uid types.UID) types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desired.translate(uid)
}

// MirrorUIDs returns the UID of the mirror pod of each static pod, "" if it has none.
func (t *Table) MirrorUIDs() map[types.UID]types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desired.translations()
}

// State returns the state of the pod, and whether it has a worker. A pod without a worker is
// Syncing until all sources have synced, because one of them may specify the pod and
// containers of it may run; then it is Finished.
func (t *Table) State(uid types.UID) (state State, worker bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s, ok := t.workers[uid]; {
	case ok:
		return s.State, true
	case t.syncedLocked():
		return Finished, false
	default:
		return Syncing, false
	}
}

// States returns the state of every pod that has a worker, by UID.
func (t *Table) States() []PodState {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := make([]PodState, 0, len(t.workers))
	for _, s := range t.workers {
		states = append(states, s.PodState)
	}
	slices.SortFunc(states, func(a, b PodState) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return states
}

// KillAndWait is [Workers.KillAndWait] for parts that are constructed before the Workers, such as
// an eviction manager. Before there are Workers no pod has one: the outcome is NotFound.
func (t *Table) KillAndWait(ctx context.Context, uid types.UID, opts KillOptions) (Outcome, error) {
	w := t.writer()
	if w == nil {
		return NotFound, fmt.Errorf("podworker: kill pod %s: %v", uid, NotFound)
	}
	return w.KillAndWait(ctx, uid, opts)
}

// Listed returns the pods of the runtime as last listed, as Config.StatusCache has them. ok is false
// if they are not up to date: before there are Workers, and while the StatusCache is not healthy.
func (t *Table) Listed() (pods []*runtime.Pod, ok bool) {
	w := t.writer()
	if w == nil || w.cfg.StatusCache.Healthy() != nil {
		return nil, false
	}
	return w.cfg.StatusCache.Pods(), true
}

func (t *Table) writer() *Workers {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.users
}

// open sets the sources and connects the Table to a Loop, which wake notifies.
func (t *Table) open(sources []string, wake chan<- struct{}) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened {
		return errors.New("podworker: Config.Table is used by another Loop")
	}
	t.opened, t.sources, t.wake = true, sources, wake
	if len(t.changed) > 0 {
		signal(wake)
	}
	return nil
}

// use marks the Table as that of Workers.
func (t *Table) use(w *Workers) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users != nil {
		return errors.New("podworker: Config.Table is used by other Workers")
	}
	t.users = w
	return nil
}

// takeChanged returns the changed pods and clears them.
func (t *Table) takeChanged() []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	uids := slices.Collect(maps.Keys(t.changed))
	clear(t.changed)
	return uids
}

// setSynced records that a source has synced, and returns whether it is the first time and
// whether all sources have.
func (t *Table) setSynced(source string) (first, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first = !t.synced[source]; first {
		if t.synced == nil {
			t.synced = map[string]bool{}
		}
		t.synced[source] = true
	}
	return first, t.syncedLocked()
}

// sourceSynced reports whether the source has synced, or every source if it is not
// configured. Static pods of a changed manifest are therefore replaced while the API server
// is not reachable.
func (t *Table) sourceSynced(source string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.sources, source) {
		return t.synced[source]
	}
	return t.syncedLocked()
}

// setDesired stores a desired pod or a mirror pod.
func (t *Table) setDesired(pod *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.desired.set(pod)
}

// removeDesired removes the desired pod or the mirror pod with that UID.
func (t *Table) removeDesired(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.desired.remove(uid)
}

// desiredPod returns the desired pod with that UID; nil if there is none.
func (t *Table) desiredPod(uid types.UID) *v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desired.pods[uid]
}

// mirrorOf returns the mirror pod of a static pod; nil if there is none.
func (t *Table) mirrorOf(pod *v1.Pod) *v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desired.mirrorOf(pod)
}

// orphanMirrors returns the mirror pods without a static pod, by UID. It returns none before
// all sources have synced, because one of them may specify the static pod.
func (t *Table) orphanMirrors() []*v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.syncedLocked() {
		return nil
	}
	return t.desired.orphanMirrors()
}

// setWorker stores the state of a pod's worker.
func (t *Table) setWorker(s workerState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.workers == nil {
		t.workers = map[types.UID]workerState{}
	}
	t.workers[s.UID] = s
}

// removeWorker removes the state of a pod's worker.
func (t *Table) removeWorker(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.workers, uid)
}

// Keep reports whether the containers and other resources of the pod must be kept: a source
// specifies it or may do so, or its worker has not finished with it. It is the argument of
// Retain and runtime.GCPolicy.Keep.
func (t *Table) Keep(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.workers[uid]; ok {
		return !s.removable
	}
	return t.desired.pods[uid] != nil || !t.syncedLocked()
}

// hasRemovable reports whether the pod has a worker and its resources may be removed.
func (t *Table) hasRemovable(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.workers[uid].removable
}
