package podworker

import (
	"context"
	"errors"
	"log/slog"
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

	// Sources lists the names of all sources. An orphaned pod is terminated only after
	// the source that created it has synced, as the runtime recorded it, or after all
	// sources if that source is not listed. Empty: orphans are terminated at once.
	Sources []string

	// Garbage removes terminated containers. Nil: they are not removed.
	Garbage runtime.GarbageCollector

	// GarbagePeriod is the period of garbage collection. It also runs when a pod is
	// forgotten and when all sources have synced. While all containers run and no pod was
	// removed, according to Config.StatusCache of the Workers, it runs every fifth period only. A
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
// of the sources (podsource.Sink), writes them to the [Table] of the Workers and terminates
// orphans. Safe for concurrent use; its methods do not block, except Run and Drain.
type Loop struct {
	cfg   LoopConfig
	table *Table
	ran   runonce.Guard

	changed chan struct{} // the Table has changed pods
	sweep   chan struct{} // the desired pods or the runtime changed
	garbage chan struct{} // terminated containers may be removed
	mirrors chan struct{} // mirror pods may be orphaned

	active   atomic.Pointer[time.Time] // when Run began its last iteration
	settling sync.Mutex                // no pod is between an old worker and a new one; locked before mu

	// mu is locked while a change of the Table is passed to the Workers, so that updates and
	// removals reach both in the same order. It guards the field below.
	mu        sync.Mutex
	allSynced bool // all sources have synced, and garbage has not been collected since
}

// NewLoop returns a Loop for cfg, or an error if Workers is nil or has another Loop. It starts nothing.
func NewLoop(cfg LoopConfig) (*Loop, error) {
	if cfg.Workers == nil {
		return nil, errors.New("podworker: LoopConfig.Workers is nil")
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
		table:   cfg.Workers.table,
		changed: make(chan struct{}, 1),
		sweep:   make(chan struct{}, 1),
		garbage: make(chan struct{}, 1),
		mirrors: make(chan struct{}, 1),
	}
	if err := l.table.open(cfg.Sources, l.changed); err != nil {
		return nil, err
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

// takeChanges takes changed pods from the Table until ctx is done.
func (l *Loop) takeChanges(ctx context.Context) {
	ticker := time.NewTicker(loopPeriod)
	defer ticker.Stop()
	for {
		l.recordActive()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.changed:
			for _, uid := range l.table.takeChanged() {
				l.podChanged(uid)
			}
		}
	}
}

// recordActive begins an iteration. It acquires the locks of the Loop, the Workers and the
// Table, so that Healthy detects one that is never released.
func (l *Loop) recordActive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.Store(new(time.Now()))
	l.table.Synced()
	l.cfg.Workers.Sync("")
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
	l.table.setDesired(pod)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod))
		return
	}
	l.updateLocked(pod, create)
}

// updateLocked passes a desired pod to the Workers. It does so under mu, so that updates and
// removals reach the Workers in the same order.
func (l *Loop) updateLocked(pod *v1.Pod, create bool) {
	_, exists := l.table.State(pod.UID)
	l.cfg.Workers.Update(pod, create)
	if mirror := l.table.mirrorOf(pod); !exists && mirror != nil {
		l.cfg.Workers.updateMirror(pod.UID, mirror)
	}
}

// mirrorChangedLocked passes the mirror pod of that name to the worker of its static pod.
func (l *Loop) mirrorChangedLocked(fullName string) {
	pod := l.table.named(fullName)
	if pod == nil || !runtime.IsStatic(pod) {
		return
	}
	mirror := l.table.mirrorOf(pod)
	l.cfg.Workers.updateMirror(pod.UID, mirror)
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
	l.table.removeDesired(pod.UID)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod)) // the worker creates it again
		return
	}
	l.cfg.Workers.Remove(pod.UID)
}

// SourceSynced reports that the named source has passed all of its pods.
func (l *Loop) SourceSynced(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, all := l.table.setSynced(source)
	l.allSynced = l.allSynced || first && all
	signal(l.sweep)
}

// podChanged has the pod synced because something about the pod has changed in the runtime or its probe
// results. The UID of a mirror pod stands for that of its static pod.
func (l *Loop) podChanged(uid types.UID) {
	if !l.cfg.Workers.Sync(uid) && !l.cfg.Workers.Sync(l.table.translateUID(uid)) {
		signal(l.sweep) // the pod may be an orphan
	}
	if pod := l.table.desiredPod(uid); pod != nil && runtime.IsStatic(pod) && l.pastSync(uid) {
		signal(l.mirrors) // its mirror pod may be missing
	}
}
