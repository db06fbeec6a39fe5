package allocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Manager stores the allocated resources of each pod and decides about resizes. See the package
// comment for its callers.
type Manager struct {
	cfg Config
	ran atomic.Bool // Run was called; internal/runonce would be one import too many for runtime/cri

	// kick makes Run retry pending resizes.
	kick chan string

	// deciding serializes decisions and the writing of their checkpoints. It is locked
	// before mu; Config.Admit and the callbacks are called with it.
	deciding sync.Mutex

	// mu guards pods and the entries; no callback is called with it. Entries change only
	// with deciding locked as well, except in Release.
	mu   sync.Mutex
	pods map[types.UID]*entry
}

// An entry has the data of a pod.
type entry struct {
	// pod is the pod as its source specifies it, or that of its checkpoint until delivered is
	// true.
	pod       *v1.Pod
	delivered bool
	synced    bool // Allocate was called

	// allocated are the allocated resources, valid if isAllocated is true.
	allocated   podResources
	isAllocated bool

	// podLevel are the applied pod-level resources.
	podLevel *v1.ResourceRequirements

	state       ResizeState
	allocatedAt time.Time // of the resize in progress

	// decided are the desired resources of the last decision.
	decided   podResources
	isDecided bool

	written *podCheckpoint // the checkpoint
	durable bool           // the checkpoint was synced to the disk
}

// Open returns a Manager with the allocations of the checkpoints in Config.Dir. It starts no
// goroutine.
//
// It returns an error if the directory cannot be created or read. A corrupt checkpoint is logged
// and counts as absent.
func Open(cfg Config) (*Manager, error) {
	if cfg.Period < 0 || cfg.EarlyPeriod < 0 {
		return nil, errors.New("allocation: Config.Period or EarlyPeriod is negative")
	}
	if cfg.Period == 0 {
		cfg.Period = 3 * time.Minute
	}
	if cfg.EarlyPeriod == 0 {
		cfg.EarlyPeriod = 30 * time.Second
	}
	if cfg.Admit == nil {
		cfg.Admit = func(context.Context, Request) *runtime.Rejection { return nil }
	}
	if cfg.Pods == nil {
		cfg.Pods = anyPods{}
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Hooks.Decided == nil {
		cfg.Hooks.Decided = func(DecisionInfo) {}
	}
	if cfg.Hooks.Undeferred == nil {
		cfg.Hooks.Undeferred = func(UndeferredInfo) {}
	}
	if cfg.Hooks.Resized == nil {
		cfg.Hooks.Resized = func(ResizedInfo) {}
	}
	m := &Manager{cfg: cfg, kick: make(chan string, 1), pods: map[types.UID]*entry{}}
	if cfg.Dir == "" {
		return m, nil
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("allocation: Config.Dir: %w", err)
	}
	records, broken, err := readCheckpoints(cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, err := range broken {
		cfg.Logger.Error("Ignored corrupt allocation checkpoint; delete the file, or drain the node first if its pod has a pending resize", "err", err)
	}
	for _, r := range records {
		m.pods[r.UID] = &entry{pod: r.pod(), allocated: r.Allocated, isAllocated: true, podLevel: r.PodLevel, written: &r}
	}
	return m, nil
}

// Admit implements pipeline.Admitter: it calls Config.Admit and stores the resources that are
// allocated to the pod if it may run. A pod that an earlier agent admitted is checked with its
// allocated resources instead of those of its spec (rule al-3).
func (m *Manager) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	rejection := m.admit(ctx, pod)
	if rejection != nil && m.cfg.Refresh != nil && m.cfg.Refresh(ctx, rejection) {
		return m.admit(ctx, pod)
	}
	return rejection
}

func (m *Manager) admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	subject := m.Allocated(pod)
	if rejection := m.cfg.Admit(ctx, Request{Pod: subject, Others: m.others(pod.UID)}); rejection != nil {
		return rejection
	}
	m.allocate(m.deliver(pod))
	return nil
}

// Allocate returns an admitted pod with its allocated resources (see [Manager.Allocated]).
// observed is the status of the pod in the runtime, nil if it was not inspected. It must be called
// in each sync.
//
// A pod without an allocation, which ran already or was not admitted by Admit, is allocated the
// resources of its spec. If the spec has changed, the resize and all other pending ones are
// decided. The progress of a resize is updated.
func (m *Manager) Allocate(ctx context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod {
	if allocated, idle := m.idle(pod, observed); idle {
		return allocated
	}
	m.deciding.Lock()
	defer m.deciding.Unlock()

	e := m.deliver(pod)
	m.allocate(e)
	trigger := triggerPodUpdated
	if !e.synced {
		trigger, e.synced = triggerPodsAdded, true
	}

	desired := desiredResources(pod, m.cfg.InitContainers)
	switch {
	case desired.Equal(e.allocated): // a resize may have been reverted
		m.mu.Lock()
		e.isDecided = false
		m.mu.Unlock()
		before := m.change(e, func(s *ResizeState) {
			s.PendingReason, s.PendingMessage, s.PendingGeneration, s.PendingSince = "", "", 0, time.Time{}
		})
		m.undeferred(pod, before, "reverted")
	case !e.isDecided || !desired.Equal(e.decided):
		m.save(e) // its allocation no longer follows from the spec
		m.retry(ctx, trigger, pod.UID)
	}
	if observed != nil {
		m.progress(ctx, e, observed)
	}
	return m.Allocated(pod)
}

// idle reports whether the pod has no resize, and returns it with its allocated resources.
func (m *Manager) idle(pod *v1.Pod, observed *runtime.PodStatus) (allocated *v1.Pod, idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil || !e.synced || e.pod != pod || !e.isAllocated || e.state != (ResizeState{}) {
		return nil, false
	}
	allocated = e.allocated.Apply(pod)
	if allocated != pod || observed != nil && InProgress(allocated, observed, e.podLevel) {
		return nil, false
	}
	return allocated, true
}

// progress updates whether a resize is in progress.
func (m *Manager) progress(ctx context.Context, e *entry, observed *runtime.PodStatus) {
	was := e.state.InProgress
	now := InProgress(e.allocated.Apply(e.pod), observed, e.podLevel)
	m.change(e, func(s *ResizeState) {
		switch {
		case now && !s.InProgress:
			s.InProgress, s.InProgressGeneration = true, e.pod.Generation
		case !now:
			s.InProgress, s.Error, s.InProgressGeneration = false, "", 0
		}
	})
	if was && !now {
		info := ResizedInfo{UID: e.pod.UID}
		if !e.allocatedAt.IsZero() {
			info.Duration = time.Since(e.allocatedAt)
		}
		m.cfg.Hooks.Resized(info)
		m.retry(ctx, triggerPodResized, e.pod.UID)
	}
}

// Allocated returns pod with the allocated resources in its spec: pod itself if they are equal or
// it has no allocation. All other components must use its result, so that a restarted container
// has the allocated resources as well (kubernetes/kubernetes#126033).
func (m *Manager) Allocated(pod *v1.Pod) *v1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[pod.UID]; e != nil && e.isAllocated {
		return e.allocated.Apply(pod)
	}
	return pod
}

// Resized stores the result of an attempt to apply the allocated resources to a running pod: nil
// if all of them were applied.
func (m *Manager) Resized(pod *v1.Pod, err error) {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	m.mu.Lock()
	e := m.pods[pod.UID]
	m.mu.Unlock()
	if e == nil || !e.isAllocated {
		return
	}
	m.change(e, func(s *ResizeState) {
		if !s.InProgress {
			return
		}
		s.Error = ""
		if err != nil {
			s.Error = err.Error()
		}
	})
	if err == nil && !samePodLevel(e.podLevel, e.allocated.Pod) {
		m.mu.Lock()
		e.podLevel = e.allocated.clone().Pod
		m.mu.Unlock()
		m.save(e)
	}
}

// ActuatedPodResources returns the applied pod-level resources, the podLevel of [Actuated] and [InProgress].
// It returns nil if the pod has none or is unknown. The caller must not modify the result.
func (m *Manager) ActuatedPodResources(uid types.UID) *v1.ResourceRequirements {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.podLevel
	}
	return nil
}

// ResizeState returns the state of a pod's resize; zero if the pod is unknown.
func (m *Manager) ResizeState(uid types.UID) ResizeState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.state
	}
	return ResizeState{}
}

// Release frees the resources of a pod that has terminated for good, and deletes its checkpoint.
// Run then retries pending resizes. It has no effect for an unknown pod.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	e := m.pods[uid]
	if e == nil {
		m.mu.Unlock()
		return
	}
	delete(m.pods, uid)
	pod, state := e.pod, e.state
	m.mu.Unlock()
	m.undeferred(pod, state, "terminated")
	m.erase(uid)
	select {
	case m.kick <- triggerPodsRemoved:
	default: // a retry is pending
	}
}

// Retain releases every pod that keep rejects, and deletes corrupt checkpoints of such pods. It must
// be called after all sources have synced; otherwise pods that were removed while no agent ran
// would keep their resources forever. It implements podworker.Retainer and returns nil.
func (m *Manager) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	files := m.checkpointFiles() // before the pods: later checkpoints are kept
	m.mu.Lock()
	all := make([]types.UID, 0, len(m.pods))
	for uid := range m.pods {
		all = append(all, uid)
	}
	m.mu.Unlock()
	for _, uid := range all {
		delete(files, fileName(uid))
		if !keep(uid) {
			m.Release(uid)
		}
	}
	for name := range files {
		if uid := types.UID(strings.TrimSuffix(name, checkpointSuffix)); !keep(uid) {
			m.erase(uid)
		}
	}
	return nil
}

// checkpointFiles returns the file names of checkpoints.
func (m *Manager) checkpointFiles() map[string]bool {
	names := map[string]bool{}
	if m.cfg.Dir == "" {
		return names
	}
	files, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		m.cfg.Logger.Error("Failed to list allocation checkpoints; obsolete ones are not deleted", "err", err)
	}
	for _, f := range files {
		if uid, ok := strings.CutSuffix(f.Name(), checkpointSuffix); ok && fileName(types.UID(uid)) == f.Name() {
			names[f.Name()] = true
		}
	}
	return names
}

// deliver stores a pod as its source specifies it.
func (m *Manager) deliver(pod *v1.Pod) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil {
		e = new(entry)
		m.pods[pod.UID] = e
	}
	if !e.delivered {
		e.state = stateOf(pod.Status.Conditions) // set by an earlier agent
	}
	e.pod, e.delivered = pod, true
	return e
}

// allocate allocates the resources of the spec to a pod without an allocation.
func (m *Manager) allocate(e *entry) {
	if e.isAllocated {
		return
	}
	m.mu.Lock()
	e.allocated, e.isAllocated = desiredResources(e.pod, m.cfg.InitContainers).clone(), true
	e.podLevel = e.allocated.Pod // the pod is started with these
	m.mu.Unlock()
	m.save(e)
}

// others returns all pods with an allocation except one, with their allocated resources.
func (m *Manager) others(except types.UID) []*v1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*v1.Pod, 0, len(m.pods))
	for uid, e := range m.pods {
		if uid != except && e.isAllocated {
			list = append(list, e.allocated.Apply(e.pod))
		}
	}
	return list
}

// change changes the state of a pod and records the events. It returns the previous state.
func (m *Manager) change(e *entry, do func(s *ResizeState)) (before ResizeState) {
	m.mu.Lock()
	before = e.state
	do(&e.state)
	after := e.state
	m.mu.Unlock()
	if before == after {
		return before
	}
	for _, o := range eventsOf(before, after, e.pod, e.allocated.Apply(e.pod)) {
		m.cfg.Record(runtime.Event{Object: runtime.PodRef(e.pod), Type: o.eventType, Reason: o.reason, Message: o.message})
	}
	return before
}

// undeferred reports the end of a deferral, if before is one.
func (m *Manager) undeferred(pod *v1.Pod, before ResizeState, resolution string) {
	if before.PendingReason != v1.PodReasonDeferred {
		return
	}
	info := UndeferredInfo{Pod: pod, Resolution: resolution}
	if !before.PendingSince.IsZero() {
		info.Duration = time.Since(before.PendingSince)
	}
	m.cfg.Hooks.Undeferred(info)
}

// save writes the checkpoint of a pod if it has changed. A failure is only logged: the checkpoint
// is needed only after a restart.
//
// A checkpoint that differs from the spec is synced to the disk. Without such a one, the next agent
// allocates the resources of the spec again, which are the same.
func (m *Manager) save(e *entry) {
	if m.cfg.Dir == "" {
		return
	}
	now := newPodCheckpoint(e.pod, e.allocated, e.podLevel)
	differs := !e.allocated.areOf(e.pod, m.cfg.InitContainers) || !samePodLevel(e.podLevel, e.allocated.Pod)
	if w := e.written; w != nil && w.Allocated.Equal(now.Allocated) && samePodLevel(w.PodLevel, now.PodLevel) && (e.durable || !differs) {
		return
	}
	uid := e.pod.UID
	write := checkpoint.WriteUnsynced
	if differs {
		write = checkpoint.Write
	}
	if err := write(m.path(uid), now); err != nil {
		m.cfg.Logger.Error("Failed to write allocation checkpoint; the allocation is lost in a restart", "pod", e.pod.Namespace+"/"+e.pod.Name, "podUID", uid, "err", err)
		return
	}
	e.written, e.durable = &now, differs
	m.mu.Lock()
	released := m.pods[uid] != e
	m.mu.Unlock()
	if released {
		m.erase(uid)
	}
}

func (m *Manager) erase(uid types.UID) {
	if m.cfg.Dir == "" {
		return
	}
	if err := os.Remove(m.path(uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.cfg.Logger.Error("Failed to delete allocation checkpoint; it is deleted after all sources have synced", "podUID", uid, "err", err)
	}
}

func (m *Manager) path(uid types.UID) string { return filepath.Join(m.cfg.Dir, fileName(uid)) }

// anyPods are the pods of a node whose sources have synced.
type anyPods struct{}

func (anyPods) Synced() bool         { return true }
func (anyPods) PodChanged(types.UID) {}
