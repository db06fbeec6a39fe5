package podworker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// LoopConfig configures a [Loop].
type LoopConfig struct {
	// Workers live the lives. Required; the Loop runs them.
	Workers *Workers

	// Sources names every source of pods. Until each has synced, what the
	// runtime holds and nobody wants is left alone: the source that wants it
	// may not have spoken yet. Empty: nothing is waited for.
	Sources []string

	// Garbage removes dead containers; nil: nobody does.
	Garbage runtime.GarbageCollector

	// GarbagePeriod is how often, beside each time a pod is forgotten. Zero:
	// 1 minute.
	GarbagePeriod time.Duration

	// KeepDead is how many dead instances of each container of a living pod
	// to keep, for logs and exit codes. Zero: 1, as the kubelet; negative:
	// all.
	KeepDead int

	// Logger, nil discards.
	Logger *slog.Logger
}

// A Loop holds the set of pods that are wanted, and keeps the Workers true to
// it: it is what the sources report to (podsource.Sink), and it ends what the
// runtime holds and nobody wants. Its methods may be called from any goroutine
// and don't block.
type Loop struct {
	cfg LoopConfig

	sweep   chan struct{} // the wanted set or the runtime changed
	garbage chan struct{} // something is dead that need not be kept

	// mu guards the fields below.
	mu     sync.Mutex
	wanted map[types.UID]*v1.Pod
	synced map[string]bool
}

// NewLoop returns a Loop for cfg, or an error if it lacks something. It starts
// nothing.
func NewLoop(cfg LoopConfig) (*Loop, error) {
	if cfg.Workers == nil {
		return nil, errors.New("podworker: LoopConfig.Workers is nil")
	}
	if cfg.GarbagePeriod == 0 {
		cfg.GarbagePeriod = time.Minute
	}
	if cfg.KeepDead == 0 {
		cfg.KeepDead = 1
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Loop{
		cfg:     cfg,
		sweep:   make(chan struct{}, 1),
		garbage: make(chan struct{}, 1),
		wanted:  map[types.UID]*v1.Pod{},
		synced:  map[string]bool{},
	}, nil
}

// Run runs the Workers and the housekeeping until ctx ends, and returns nil
// when all of it has returned. Run it once.
func (l *Loop) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = l.cfg.Workers.Run(ctx) }) // returns nil by its contract
	if l.cfg.Garbage != nil {
		wg.Go(func() { l.collect(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.cfg.Workers.finished:
			l.Settle()
		case <-l.sweep:
			l.Settle()
			l.Sweep()
		}
	}
}

// AddPods takes pods that a source has begun to want, oldest first (sl-15).
func (l *Loop) AddPods(pods []*v1.Pod) {
	pods = slices.SortedStableFunc(slices.Values(pods), func(a, b *v1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	l.want(pods, true)
}

// UpdatePods takes pods that a source wants otherwise than before, or wants
// deleted.
func (l *Loop) UpdatePods(pods []*v1.Pod) { l.want(pods, false) }

func (l *Loop) want(pods []*v1.Pod, create bool) {
	l.mu.Lock()
	for _, pod := range pods {
		l.wanted[pod.UID] = pod
	}
	l.mu.Unlock()
	for _, pod := range pods {
		l.cfg.Workers.Update(pod, create)
	}
}

// RemovePods takes pods that a source does not want any more.
func (l *Loop) RemovePods(pods []*v1.Pod) {
	l.mu.Lock()
	for _, pod := range pods {
		delete(l.wanted, pod.UID)
	}
	l.mu.Unlock()
	for _, pod := range pods {
		l.cfg.Workers.Remove(pod.UID)
	}
	signal(l.sweep)
}

// SourceSynced takes note that the named source has said all it wants.
func (l *Loop) SourceSynced(source string) {
	l.mu.Lock()
	l.synced[source] = true
	l.mu.Unlock()
	signal(l.sweep)
}

// PodChanged takes note that something about the pod changed in the runtime: a
// pleg event, a probe result.
func (l *Loop) PodChanged(uid types.UID) {
	if !l.cfg.Workers.Sync(uid) {
		signal(l.sweep) // unknown: perhaps an orphan
	}
}

// Synced reports whether every source has said what it wants.
func (l *Loop) Synced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncedLocked()
}

func (l *Loop) syncedLocked() bool {
	for _, source := range l.cfg.Sources {
		if !l.synced[source] {
			return false
		}
	}
	return true
}

// Pods returns the pods that are wanted, by namespace and name. The pods are
// shared: don't change them.
func (l *Loop) Pods() []*v1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.wanted), func(a, b *v1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	})
}

// Settle drops the lives that are finished and not wanted, and starts over those
// that were wanted anew meanwhile (sl-54). Run calls it when a life ends. It
// looks at what has finished since the last time, not at all pods.
func (l *Loop) Settle() {
	forgetter, _ := l.cfg.Workers.cfg.Handler.(Forgetter)
	for _, uid := range l.cfg.Workers.takeSettled() {
		l.mu.Lock()
		_, wanted := l.wanted[uid]
		l.mu.Unlock()
		pod, forgotten := l.cfg.Workers.forget(uid, wanted)
		if !forgotten {
			continue
		}
		signal(l.garbage)
		if pod != nil && forgetter != nil {
			forgetter.Forget(pod) // also if it starts over: this life is done with
		}
		l.startOver(uid)
	}
}

// startOver begins the life of a pod that is wanted and has none.
func (l *Loop) startOver(uid types.UID) {
	// Not as it was before: a pod that was removed since must not start. Held
	// on to, so that one that is removed from now on is ended after its start.
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, wanted := l.wanted[uid]
	if !wanted {
		return
	}
	if _, known := l.cfg.Workers.Known(uid); !known {
		l.cfg.Workers.Update(pod, true)
	}
}

// Sweep ends what runs in the runtime and nobody wants (sl-56), once every
// source has synced. Run calls it when the runtime or the wanted set changed.
func (l *Loop) Sweep() {
	// The list is taken before the wanted set, so that a pod which is added
	// between the two is not taken for an orphan.
	pods := l.cfg.Workers.cfg.Pods()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.syncedLocked() {
		return
	}
	for _, pod := range pods {
		if _, ok := l.wanted[pod.UID]; ok || !running(pod) {
			continue
		}
		if _, known := l.cfg.Workers.Known(pod.UID); !known {
			l.cfg.Logger.Info("ending a pod that nobody wants", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID)
			l.cfg.Workers.KillOrphan(pod)
		}
	}
}

// running reports whether a list shows anything of pod that has to be stopped.
// What the runtime lost track of may run.
func running(pod *runtime.Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c runtime.Container) bool {
		return c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown
	}) || slices.ContainsFunc(pod.Sandboxes, func(s runtime.Sandbox) bool {
		return s.State == runtime.SandboxReady
	})
}

// collect removes what is dead, each period and when told.
func (l *Loop) collect(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.GarbagePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.garbage:
		}
		err := l.cfg.Garbage.CollectGarbage(ctx, runtime.GCPolicy{MaxPerContainer: l.cfg.KeepDead, Removed: l.removed})
		if err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("garbage collection failed", "err", err)
		}
	}
}

// removed reports whether nothing of the pod need be kept (rt-129).
func (l *Loop) removed(uid types.UID) bool {
	if removable, known := l.cfg.Workers.Removable(uid); known {
		return removable
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, wanted := l.wanted[uid]
	return !wanted && l.syncedLocked()
}
