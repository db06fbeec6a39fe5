package podworker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// LoopConfig configures a [Loop].
type LoopConfig struct {
	// Workers run the pods. Required; the Loop runs them.
	Workers *Workers

	// Inbox receives changed pods from subsystems that were constructed before the
	// Loop. Nil: they are reported by PodChanged only.
	Inbox *Inbox

	// Sources lists the names of all sources. An orphaned pod is terminated only after
	// the source that created it has synced, as the runtime recorded it, or after all
	// sources if that source is not listed. Empty: orphans are terminated at once.
	Sources []string

	// Garbage removes terminated containers. Nil: they are not removed.
	Garbage runtime.GarbageCollector

	// GarbagePeriod is the period of garbage collection. It also runs when a pod is
	// forgotten and when all sources have synced. While all containers run and no pod was
	// removed, according to Config.Pods of the Workers, it runs every fifth period only. A
	// failure is retried after 5 seconds, doubling up to GarbagePeriod. Zero: 1 minute.
	GarbagePeriod time.Duration

	// MaxPerContainer is the number of terminated instances of each container of an existing
	// pod to keep for logs and exit codes. Zero: 1, as in the kubelet; negative: all.
	MaxPerContainer int

	// Node is the object of the event ContainerGCFailed, which is recorded by
	// Config.Record of the Workers. Empty: it is not recorded.
	Node v1.ObjectReference

	// Mirrors deletes orphaned mirror pods. Nil: they are not deleted.
	Mirrors Mirrors

	// Logger is used for orphans and failed garbage collection. If nil, logs are
	// discarded.
	Logger *slog.Logger

	// Hooks are called for observation: Orphan and Restarted.
	Hooks Hooks
}

// A Loop maintains the set of desired pods and applies it to the Workers. It receives the pods
// of the sources (podsource.Sink) and terminates orphans. Safe for concurrent use; its methods
// do not block, except Run and Drain.
type Loop struct {
	cfg LoopConfig
	ran runonce.Guard

	inbox   chan struct{} // the Inbox is not empty
	sweep   chan struct{} // the desired pods or the runtime changed
	garbage chan struct{} // terminated containers may be removed
	mirrors chan struct{} // mirror pods may be orphaned

	active   atomic.Pointer[time.Time] // when Run began its last iteration
	settling sync.Mutex                // no pod is between an old worker and a new one; locked before mu

	// mu guards the fields below.
	mu        sync.Mutex
	desired   podSet
	synced    map[string]bool
	allSynced bool // all sources have synced, and garbage has not been collected since
}

// NewLoop returns a Loop for cfg, or an error if Workers is nil. It starts nothing.
func NewLoop(cfg LoopConfig) (*Loop, error) {
	if cfg.Workers == nil {
		return nil, errors.New("podworker: LoopConfig.Workers is nil")
	}
	if cfg.Inbox == nil {
		cfg.Inbox = new(Inbox)
	}
	if cfg.GarbagePeriod == 0 {
		cfg.GarbagePeriod = time.Minute
	}
	if cfg.MaxPerContainer == 0 {
		cfg.MaxPerContainer = 1
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Hooks.Orphan == nil {
		cfg.Hooks.Orphan = func(*runtime.Pod) {}
	}
	if cfg.Hooks.Restarted == nil {
		cfg.Hooks.Restarted = func(*v1.Pod) {}
	}
	l := &Loop{
		cfg:     cfg,
		inbox:   make(chan struct{}, 1),
		sweep:   make(chan struct{}, 1),
		garbage: make(chan struct{}, 1),
		mirrors: make(chan struct{}, 1),
		desired: newPodSet(),
		synced:  map[string]bool{},
	}
	cfg.Inbox.open(l.inbox)
	if len(cfg.Sources) == 0 {
		cfg.Inbox.setSynced()
	}
	return l, nil
}

// Run runs the Workers, the termination of orphans and garbage collection until ctx is done,
// and returns nil when all of it has returned. It returns an error if it is called a second
// time, or if the Workers were run before.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.ran.Enter("podworker: Loop"); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		err = l.cfg.Workers.Run(ctx)
		stop()
	})
	wg.Go(func() { l.runSweeps(ctx) })
	if l.cfg.Garbage != nil {
		wg.Go(func() { l.collect(ctx) })
	}
	if l.cfg.Mirrors != nil {
		wg.Go(func() { l.syncMirrors(ctx) })
	}
	l.takeChanges(ctx)
	wg.Wait()
	return err
}

// Liveness of Run, as in the kubelet: the period of its iterations without changes, and how
// old the last one may be (rule sv-4).
const (
	loopPeriod = time.Minute
	stuckAfter = max(2*loopPeriod, 5*time.Minute)
)

// takeChanges takes changed pods from the Inbox until ctx is done.
func (l *Loop) takeChanges(ctx context.Context) {
	ticker := time.NewTicker(loopPeriod)
	defer ticker.Stop()
	for {
		l.recordActive()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.inbox:
			for _, uid := range l.cfg.Inbox.take() {
				l.PodChanged(uid)
			}
		}
	}
}

// recordActive begins an iteration. It acquires the locks of the Loop and the Workers, so
// that Healthy detects one that is never released.
func (l *Loop) recordActive() {
	now := time.Now()
	l.active.Store(&now)
	l.Synced()
	l.cfg.Workers.State("")
}

// Healthy returns an error if Run has not completed an iteration for more than 5 minutes. It
// is nil before Run, and is meant for liveness probes of the agent. It does not block.
func (l *Loop) Healthy() error {
	if at := l.active.Load(); at != nil && time.Since(*at) > stuckAfter {
		return errors.New("sync Loop took longer than expected")
	}
	return nil
}

// AddPods takes pods that a source has added. They are started in the order of their creation.
//
// A mirror pod is not run; it is passed to the worker of its static pod.
func (l *Loop) AddPods(pods []*v1.Pod) {
	pods = slices.SortedStableFunc(slices.Values(pods), func(a, b *v1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	l.setPods(pods, true)
}

// UpdatePods takes pods whose spec or metadata, such as the deletionTimestamp, a source has
// changed.
func (l *Loop) UpdatePods(pods []*v1.Pod) { l.setPods(pods, false) }

func (l *Loop) setPods(pods []*v1.Pod, create bool) {
	for _, pod := range pods {
		l.setPod(pod, create)
	}
	if slices.ContainsFunc(pods, runtime.IsMirror) {
		signal(l.sweep) // the mirror pod may be orphaned
	}
}

// setPod takes one pod. The lock is released between pods, so that a thousand of them do not
// delay other callers.
func (l *Loop) setPod(pod *v1.Pod, create bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.desired.set(pod)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod))
		return
	}
	l.updateLocked(pod, create)
}

// updateLocked passes a desired pod to the Workers. It does so under mu, so that updates and
// removals reach the Workers in the same order.
func (l *Loop) updateLocked(pod *v1.Pod, create bool) {
	_, exists := l.cfg.Workers.State(pod.UID)
	l.cfg.Workers.Update(pod, create)
	if mirror := l.desired.mirrorOf(pod); !exists && mirror != nil {
		l.cfg.Workers.UpdateMirror(pod.UID, mirror)
	}
}

// mirrorChangedLocked passes the mirror pod of that name to the worker of its static pod.
func (l *Loop) mirrorChangedLocked(fullName string) {
	pod := l.desired.named(fullName)
	if pod == nil || !runtime.IsStatic(pod) {
		return
	}
	mirror := l.desired.mirrorOf(pod)
	l.cfg.Workers.UpdateMirror(pod.UID, mirror)
	if !l.pastSync(pod.UID) {
		return // the sync creates the mirror pod and reports the status
	}
	if mirror != nil && mirrorMatches(pod, mirror) {
		l.cfg.Workers.reconcile(withStatusOf(pod, mirror))
	}
	signal(l.mirrors)
}

// RemovePods takes pods that a source does not specify any more.
func (l *Loop) RemovePods(pods []*v1.Pod) {
	for _, pod := range pods {
		l.removePod(pod)
	}
	signal(l.sweep)
}

func (l *Loop) removePod(pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.desired.remove(pod.UID)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod)) // the worker creates it again
		return
	}
	l.cfg.Workers.Remove(pod.UID)
}

// SyncStatic makes every static pod due, so that their mirror pods are created. It is called
// when the node's object has been created, which changes no pod.
func (l *Loop) SyncStatic() {
	for _, pod := range l.Pods() {
		if runtime.IsStatic(pod) {
			l.cfg.Workers.Sync(pod.UID)
		}
	}
	signal(l.mirrors)
}

// SourceSynced reports that the named source has passed all of its pods.
func (l *Loop) SourceSynced(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.synced[source]
	l.synced[source] = true
	if len(l.unsyncedLocked()) == 0 {
		l.cfg.Inbox.setSynced()
		l.allSynced = l.allSynced || first
	}
	signal(l.sweep)
}

// PodChanged reports that something about the pod has changed in the runtime or its probe
// results. The UID of a mirror pod stands for that of its static pod.
func (l *Loop) PodChanged(uid types.UID) {
	if !l.cfg.Workers.Sync(uid) && !l.cfg.Workers.Sync(l.TranslateUID(uid)) {
		signal(l.sweep) // the pod may be an orphan
	}
}

// Synced reports whether every source has synced.
func (l *Loop) Synced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unsyncedLocked()) == 0
}

// unsyncedLocked returns the sources that have not synced.
// Unsynced returns the sources that have not synced, in the order of LoopConfig.Sources. Until all
// have, pods that none specifies may be those of an unsynced source, and keep running.
func (l *Loop) Unsynced() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsyncedLocked()
}

func (l *Loop) unsyncedLocked() (unsynced []string) {
	for _, source := range l.cfg.Sources {
		if !l.synced[source] {
			unsynced = append(unsynced, source)
		}
	}
	return unsynced
}

// Pods returns the desired pods without mirror pods, by namespace and name. They are shared
// and must not be changed.
func (l *Loop) Pods() []*v1.Pod {
	l.mu.Lock()
	pods := slices.Collect(maps.Values(l.desired.pods))
	l.mu.Unlock()
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	})
	return pods
}

// Pod returns the desired pod with that UID, or whose mirror pod has it, and its mirror pod;
// nil for one that does not exist. They are shared and must not be changed.
func (l *Loop) Pod(uid types.UID) (pod, mirror *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pod = l.desired.pods[l.desired.translate(uid)]; pod == nil {
		return nil, l.desired.mirrors[uid]
	}
	return pod, l.desired.mirrorOf(pod)
}

// PodByName returns the desired pod of that name, of several the one that was updated last;
// nil if there is none.
func (l *Loop) PodByName(namespace, name string) *v1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desired.named(name + "_" + namespace)
}

// TranslateUID returns the UID of the static pod for that of its mirror pod, and any other UID
// unchanged.
func (l *Loop) TranslateUID(uid types.UID) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desired.translate(uid)
}

// MirrorUIDs returns the UID of the mirror pod of each static pod, "" if it has none.
func (l *Loop) MirrorUIDs() map[types.UID]types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desired.translations()
}

// State returns the state of the pod. For a pod without a worker it is Syncing until all
// sources have synced, because one of them may specify the pod and containers of it may run;
// then it is Finished.
func (l *Loop) State(uid types.UID) State {
	if state, ok := l.cfg.Workers.State(uid); ok {
		return state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsyncedLocked()) > 0 {
		return Syncing
	}
	// The last source may have synced and added the pod since.
	if state, ok := l.cfg.Workers.State(uid); ok {
		return state
	}
	return Finished
}
