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
	// Workers live the lives. Required; the Loop runs them.
	Workers *Workers

	// Inbox brings the changes of those who were made before the Loop. Nil:
	// PodChanged is the only way.
	Inbox *Inbox

	// Sources names every source of pods. Until each has synced, what the
	// runtime holds and nobody wants is left alone: the source that wants it
	// may not have spoken yet. A pod of which the runtime tells the source is
	// left alone until that one has spoken (L-28). Empty: nothing is waited
	// for.
	Sources []string

	// Garbage removes dead containers; nil: nobody does.
	Garbage runtime.GarbageCollector

	// GarbagePeriod is how often, beside each time a pod is forgotten, and once
	// all sources have spoken. A failure is tried again before, after 5 s at
	// first. Zero: 1 minute.
	GarbagePeriod time.Duration

	// KeepDead is how many dead instances of each container of a living pod
	// to keep, for logs and exit codes. Zero: 1, as the kubelet; negative:
	// all.
	KeepDead int

	// Node is whom the event is about that garbage could not be collected
	// (cg-9), which goes to the Workers' Record. Empty: there is none.
	Node v1.ObjectReference

	// Mirrors deletes copies of static pods that nobody wants any more. Nil:
	// nobody does.
	Mirrors Mirrors

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks LoopHooks
}

// LoopHooks are called as things happen, on the goroutine they happen on; they
// must not block, nor call the Loop. Any may be nil.
type LoopHooks struct {
	// Orphan is called for each pod that is ended because nobody wants it
	// (kubelet_orphaned_runtime_pods_total).
	Orphan func(*runtime.Pod)

	// Restarted is called for each pod that starts over, wanted anew when it
	// had ended (kubelet_restarted_pods_total).
	Restarted func(*v1.Pod)
}

// A Loop holds the set of pods that are wanted, and keeps the Workers true to
// it: it is what the sources report to (podsource.Sink), and it ends what the
// runtime holds and nobody wants. Its methods may be called from any goroutine
// and don't block.
type Loop struct {
	cfg LoopConfig
	ran runonce.Guard

	inbox   chan struct{} // there is something in the Inbox
	sweep   chan struct{} // the wanted set or the runtime changed
	garbage chan struct{} // something is dead that need not be kept

	turned atomic.Pointer[time.Time] // when Run began its last round

	// mu guards the fields below.
	mu     sync.Mutex
	wanted podSet
	synced map[string]bool
	heard  bool // all sources have spoken, and what that allows has not been done yet
}

// NewLoop returns a Loop for cfg, or an error if it lacks something. It starts
// nothing.
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
	if cfg.KeepDead == 0 {
		cfg.KeepDead = 1
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
		wanted:  newPodSet(),
		synced:  map[string]bool{},
	}
	cfg.Inbox.open(l.inbox)
	if len(cfg.Sources) == 0 {
		cfg.Inbox.setSynced()
	}
	return l, nil
}

// Run runs the Workers and the housekeeping until ctx is done, and returns nil
// when all of it has returned. A second call returns an error, and so does a call
// for Workers that were run before.
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
	wg.Go(func() { l.keepHouse(ctx) })
	if l.cfg.Garbage != nil || l.cfg.Mirrors != nil {
		wg.Go(func() { l.collect(ctx) })
	}
	l.takeChanges(ctx)
	wg.Wait()
	return err
}

// takeChanges takes what the Inbox holds until ctx is done.
func (l *Loop) takeChanges(ctx context.Context) {
	turns := time.NewTicker(turnPeriod)
	defer turns.Stop()
	for {
		l.turn()
		select {
		case <-ctx.Done():
			return
		case <-turns.C:
		case <-l.inbox:
			for _, uid := range l.cfg.Inbox.take() {
				l.PodChanged(uid)
			}
		}
	}
}

// AddPods takes pods that a source has begun to want, oldest first (sl-15).
//
// A mirror pod among them, the API server's copy of a static pod, is not run: it
// is handed to the life of that pod (sl-16).
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
	for _, pod := range pods {
		l.wantOne(pod, create)
	}
	if slices.ContainsFunc(pods, runtime.IsMirror) {
		signal(l.sweep) // its static pod may be gone
	}
}

// wantOne takes one pod: it is held on to for no longer, so that a thousand pods
// at once keep nobody waiting.
func (l *Loop) wantOne(pod *v1.Pod, create bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted.set(pod)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod))
		return
	}
	l.startLocked(pod, create)
}

// startLocked hands a wanted pod to the Workers. It is done under mu, so that of
// a wish and its end the later one is heard last.
func (l *Loop) startLocked(pod *v1.Pod, create bool) {
	_, known := l.cfg.Workers.Known(pod.UID)
	l.cfg.Workers.Update(pod, create)
	if mirror := l.wanted.mirrorOf(pod); !known && mirror != nil {
		l.cfg.Workers.Mirror(pod.UID, mirror)
	}
}

// mirrorChangedLocked hands what is known of the copy to the pod of that name.
func (l *Loop) mirrorChangedLocked(fullName string) {
	if pod := l.wanted.named(fullName); pod != nil && runtime.IsStatic(pod) {
		l.cfg.Workers.Mirror(pod.UID, l.wanted.mirrorOf(pod))
	}
}

// RemovePods takes pods that a source does not want any more.
func (l *Loop) RemovePods(pods []*v1.Pod) {
	for _, pod := range pods {
		l.removeOne(pod)
	}
	signal(l.sweep)
}

func (l *Loop) removeOne(pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted.remove(pod.UID)
	if runtime.IsMirror(pod) {
		l.mirrorChangedLocked(runtime.PodFullName(pod)) // it is made anew (sl-23, mir-6)
		return
	}
	l.cfg.Workers.Remove(pod.UID)
}

// SyncStatic makes every static pod due, so that their copies are made: when the
// node's object has come to be, which no pod is told of (sl-65).
func (l *Loop) SyncStatic() {
	for _, pod := range l.Pods() {
		if runtime.IsStatic(pod) {
			l.cfg.Workers.Sync(pod.UID)
		}
	}
}

// SourceSynced takes note that the named source has said all it wants.
func (l *Loop) SourceSynced(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.synced[source]
	l.synced[source] = true
	if len(l.silentLocked()) == 0 {
		l.cfg.Inbox.setSynced()
		l.heard = l.heard || first
	}
	signal(l.sweep)
}

// PodChanged takes note that something about the pod changed in the runtime: a
// pleg event, a probe result. A mirror's UID stands for its static pod's.
func (l *Loop) PodChanged(uid types.UID) {
	if !l.cfg.Workers.Sync(uid) && !l.cfg.Workers.Sync(l.TranslateUID(uid)) {
		signal(l.sweep) // unknown: perhaps an orphan
	}
}

// Synced reports whether every source has said what it wants.
func (l *Loop) Synced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.silentLocked()) == 0
}

// silentLocked returns the sources that have not spoken yet.
func (l *Loop) silentLocked() (silent []string) {
	for _, source := range l.cfg.Sources {
		if !l.synced[source] {
			silent = append(silent, source)
		}
	}
	return silent
}

// Pods returns the pods that are wanted, by namespace and name. The pods are
// shared: don't change them. Mirror pods are not among them.
func (l *Loop) Pods() []*v1.Pod {
	l.mu.Lock()
	pods := slices.Collect(maps.Values(l.wanted.pods))
	l.mu.Unlock()
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	})
	return pods
}

// Pod returns the wanted pod of that UID, or of the mirror that has it, and what
// the API server has as its copy; nil for what there is not. They are shared:
// don't change them.
func (l *Loop) Pod(uid types.UID) (pod, mirror *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pod = l.wanted.pods[l.wanted.translate(uid)]; pod == nil {
		return nil, l.wanted.mirrors[uid]
	}
	return pod, l.wanted.mirrorOf(pod)
}

// PodByName returns the wanted pod of that name, of several the one that was
// heard of last; nil if there is none.
func (l *Loop) PodByName(namespace, name string) *v1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted.named(name + "_" + namespace)
}

// TranslateUID returns the UID by which a pod is known here: for that of a mirror
// the static pod's, any other as it is (ps-3).
func (l *Loop) TranslateUID(uid types.UID) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted.translate(uid)
}

// MirrorUIDs returns the UID of each static pod's mirror, empty where there is
// none (ps-4).
func (l *Loop) MirrorUIDs() map[types.UID]types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted.translations()
}

// State returns how far the pod's life has gone. One that has none may be some
// source's that has not spoken yet, so that containers of it may run: Syncing.
// When all have spoken it is over: Finished. (Section 2.2.)
func (l *Loop) State(uid types.UID) State {
	if state, known := l.cfg.Workers.Known(uid); known {
		return state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.silentLocked()) > 0 {
		return Syncing
	}
	// The last source may have spoken since, and wanted it.
	if state, known := l.cfg.Workers.Known(uid); known {
		return state
	}
	return Finished
}

// Explain tells why a pod is where it is, also one that only the runtime knows
// so far, and reports whether it is known to anybody. It does not block.
func (l *Loop) Explain(uid types.UID) (Explanation, bool) {
	uid = l.TranslateUID(uid)
	if e, ok := l.cfg.Workers.Explain(uid); ok {
		return e, true
	}
	for _, pod := range l.cfg.Workers.cfg.Pods() {
		if pod.UID != uid {
			continue
		}
		l.mu.Lock()
		silent := l.silentLocked()
		l.mu.Unlock()
		e := Explanation{
			At: time.Now(), UID: uid, Namespace: pod.Namespace, Name: pod.Name,
			State: Syncing, Seen: pod.CreatedAt, Since: pod.CreatedAt, Wait: WaitSources, Sources: silent,
		}
		if len(silent) == 0 {
			e.State, e.Wait = Finished, "" // what is left of it is dead
		}
		return e, true
	}
	return Explanation{}, false
}
