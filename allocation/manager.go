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

// A Manager knows what each pod of the node was granted, and decides about
// those that ask for something else. See the package comment for who calls
// what.
type Manager struct {
	cfg Config
	ran atomic.Bool // Run was called; internal/runonce would be one import too many for runtime/cri

	// kick tells Run why to try pending resizes now.
	kick chan Trigger

	// deciding is held while a pod is decided about and while that is written
	// down: one at a time. It is taken before mu, and while it is held
	// Config.Admit and the callbacks are called.
	deciding sync.Mutex

	// mu guards pods and what the entries hold; nothing is called under it.
	// Entries change only while deciding is held too, but for Release.
	mu   sync.Mutex
	pods map[types.UID]*entry
}

// An entry is what the Manager knows of one pod.
type entry struct {
	// pod as it is wanted, or as its record has it if nobody has brought it
	// yet.
	pod     *v1.Pod
	brought bool
	synced  bool // Allocate was called

	// granted is what the pod may have; held tells that there is such.
	granted Resources
	held    bool

	// podLevel is what the pod as a whole was last given.
	podLevel *v1.ResourceRequirements

	state     State
	grantedAt time.Time // of the resize in progress

	// decided is what the pod asked for when it was last decided about.
	decided   Resources
	isDecided bool

	written *record // as it is on disk
}

// Open returns a Manager for cfg, with what the records of an earlier agent
// tell. It starts nothing.
//
// A directory that cannot be made or read is an error. A record that is broken
// is not: it is logged, with its name, and its pod is taken for unknown, which
// hurts no other (see "Differences from the kubelet").
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
	if cfg.Ready == nil {
		cfg.Ready = func() bool { return true }
	}
	if cfg.Changed == nil {
		cfg.Changed = func(types.UID) {}
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
	if cfg.Hooks.Resized == nil {
		cfg.Hooks.Resized = func(ResizedInfo) {}
	}
	m := &Manager{cfg: cfg, kick: make(chan Trigger, 1), pods: map[types.UID]*entry{}}
	if cfg.Dir == "" {
		return m, nil
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("allocation: Config.Dir: %w", err)
	}
	records, broken, err := readRecords(cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, err := range broken {
		cfg.Logger.Error("allocation record is broken and counts as absent; delete the file, or drain the node first if its pod has a resize pending", "err", err)
	}
	for _, r := range records {
		m.pods[r.UID] = &entry{pod: r.pod(), granted: r.Granted, held: true, podLevel: r.PodLevel, written: &r}
	}
	return m, nil
}

// Admit implements podworker.Admitter: it calls Config.Admit and records the
// resources that are allocated to the pod if it may run (al-4). A pod that an
// earlier agent admitted is checked with its allocated resources instead of those
// of its spec (al-3).
func (m *Manager) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	subject := m.Allocated(pod)
	if rejection := m.cfg.Admit(ctx, Request{Operation: Add, Pod: subject, Others: m.others(pod.UID)}); rejection != nil {
		return rejection
	}
	m.hold(m.bring(pod))
	return nil
}

// Allocate takes a pod that was let in, as it is wanted now, and what the
// runtime shows of it (nil: nobody looked). It returns the pod with what it is
// granted (see [Manager.Allocated]).
//
// A pod that was granted nothing yet (it ran already, or something else than
// Admit let it in) is granted what it asks for. One that asks for something
// else than before is decided about, with all that are pending; and what of a
// resize is done is seen here. It is to be called in each sync.
func (m *Manager) Allocate(ctx context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod {
	if granted, idle := m.idle(pod, observed); idle {
		return granted
	}
	m.deciding.Lock()
	defer m.deciding.Unlock()

	e := m.bring(pod)
	m.hold(e)
	trigger := PodUpdated
	if !e.synced {
		trigger, e.synced = PodsAdded, true
	}

	desired := Desired(pod, m.cfg.AllInit)
	switch {
	case desired.Equal(e.granted): // it may have taken back what it asked for (sl-21)
		m.mu.Lock()
		e.isDecided = false
		m.mu.Unlock()
		m.change(e, func(s *State) {
			s.Pending, s.PendingMessage, s.PendingGeneration, s.PendingSince = NotPending, "", 0, time.Time{}
		})
	case !e.isDecided || !desired.Equal(e.decided):
		m.retry(ctx, trigger, pod.UID)
	}
	if observed != nil {
		m.progress(ctx, e, observed)
	}
	return m.Allocated(pod)
}

// idle reports whether there is nothing to decide or to say of the pod, and
// returns it with what it was granted.
func (m *Manager) idle(pod *v1.Pod, observed *runtime.PodStatus) (granted *v1.Pod, idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil || !e.synced || e.pod != pod || !e.held || e.state != (State{}) {
		return nil, false
	}
	granted = e.granted.Apply(pod)
	if granted != pod || observed != nil && InProgress(granted, observed, e.podLevel) {
		return nil, false
	}
	return granted, true
}

// progress finds out whether a resize is under way or done.
func (m *Manager) progress(ctx context.Context, e *entry, observed *runtime.PodStatus) {
	was := e.state.InProgress
	now := InProgress(e.granted.Apply(e.pod), observed, e.podLevel)
	m.change(e, func(s *State) {
		switch {
		case now && !s.InProgress:
			s.InProgress, s.ProgressGeneration = true, e.pod.Generation
		case !now:
			s.InProgress, s.Error, s.ProgressGeneration = false, "", 0
		}
	})
	if was && !now {
		info := ResizedInfo{UID: e.pod.UID}
		if !e.grantedAt.IsZero() {
			info.Duration = time.Since(e.grantedAt)
		}
		m.cfg.Hooks.Resized(info)
		m.retry(ctx, PodResized, e.pod.UID)
	}
}

// Allocated returns pod with the resources that it was granted in place of
// those that it asks for: pod itself if they are the same, or if it was granted
// nothing. It is what the rest of an agent is to see of a pod (L-55): also a
// container that crashed comes back with what was granted (#126033).
func (m *Manager) Allocated(pod *v1.Pod) *v1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[pod.UID]; e != nil && e.held {
		return e.granted.Apply(pod)
	}
	return pod
}

// Resized takes what became of an attempt to give a running pod what it was
// granted: nil if all of it was done.
func (m *Manager) Resized(pod *v1.Pod, err error) {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	m.mu.Lock()
	e := m.pods[pod.UID]
	m.mu.Unlock()
	if e == nil || !e.held {
		return
	}
	m.change(e, func(s *State) {
		if !s.InProgress {
			return
		}
		s.Error = ""
		if err != nil {
			s.Error = err.Error()
		}
	})
	if err == nil && !samePodLevel(e.podLevel, e.granted.Pod) {
		m.mu.Lock()
		e.podLevel = e.granted.clone().Pod
		m.mu.Unlock()
		m.save(e)
	}
}

// PodLevel returns what a pod as a whole was last given: what [Actuated] and
// [InProgress] call podLevel. Nil: it has no pod-level resources, or is not
// known. Shared: don't change it.
func (m *Manager) PodLevel(uid types.UID) *v1.ResourceRequirements {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.podLevel
	}
	return nil
}

// State returns how the resize of a pod stands; zero if the pod is not known.
func (m *Manager) State(uid types.UID) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.state
	}
	return State{}
}

// Release gives back what the pod was granted: nothing of it runs any more, nor
// will. Its record goes. Run then tries what is pending, for there is room. A
// pod that is not known is no error.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	e := m.pods[uid]
	delete(m.pods, uid)
	m.mu.Unlock()
	if e == nil {
		return
	}
	m.erase(uid)
	select {
	case m.kick <- PodsRemoved:
	default: // it is going to look anyway
	}
}

// Prune releases each pod that keep does not want, and removes broken records of
// such pods: call it once all sources have spoken, for what was removed while no
// agent ran would hold its room for ever.
func (m *Manager) Prune(keep func(uid types.UID) bool) {
	files := m.recordFiles() // before the pods are: what is written after this stays
	m.mu.Lock()
	known := make([]types.UID, 0, len(m.pods))
	for uid := range m.pods {
		known = append(known, uid)
	}
	m.mu.Unlock()
	for _, uid := range known {
		delete(files, fileName(uid))
		if !keep(uid) {
			m.Release(uid)
		}
	}
	for name := range files {
		if uid := types.UID(strings.TrimSuffix(name, recordEnding)); !keep(uid) {
			m.erase(uid)
		}
	}
}

// recordFiles returns the names of the files that are called like records.
func (m *Manager) recordFiles() map[string]bool {
	names := map[string]bool{}
	if m.cfg.Dir == "" {
		return names
	}
	files, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		m.cfg.Logger.Error("allocation records not listed", "err", err)
	}
	for _, f := range files {
		if uid, ok := strings.CutSuffix(f.Name(), recordEnding); ok && fileName(types.UID(uid)) == f.Name() {
			names[f.Name()] = true
		}
	}
	return names
}

// bring takes note of a pod as it is wanted now.
func (m *Manager) bring(pod *v1.Pod) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil {
		e = new(entry)
		m.pods[pod.UID] = e
	}
	if !e.brought {
		e.state = stateOf(pod.Status.Conditions) // what an earlier agent said
	}
	e.pod, e.brought = pod, true
	return e
}

// hold grants a pod what it asks for, if it was granted nothing yet.
func (m *Manager) hold(e *entry) {
	if e.held {
		return
	}
	m.mu.Lock()
	e.granted, e.held = Desired(e.pod, m.cfg.AllInit).clone(), true
	e.podLevel = e.granted.Pod // what it is started with
	m.mu.Unlock()
	m.save(e)
}

// others returns all pods but one that were granted something, with that.
func (m *Manager) others(but types.UID) []*v1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*v1.Pod, 0, len(m.pods))
	for uid, e := range m.pods {
		if uid != but && e.held {
			list = append(list, e.granted.Apply(e.pod))
		}
	}
	return list
}

// change makes a change to the state of a pod, and tells what happened by it.
func (m *Manager) change(e *entry, do func(s *State)) {
	m.mu.Lock()
	before := e.state
	do(&e.state)
	after := e.state
	m.mu.Unlock()
	if before == after {
		return
	}
	for _, o := range tell(before, after, e.pod, e.granted.Apply(e.pod)) {
		m.cfg.Record(runtime.Event{Object: runtime.PodRef(e.pod), Type: o.eventType, Reason: o.reason, Message: o.message})
	}
}

// save writes down what a pod was granted, if that is not what is written
// already (al-5). A failure is logged, and no more: the pod runs, and the record
// is only needed after a restart (al-4).
func (m *Manager) save(e *entry) {
	if m.cfg.Dir == "" {
		return
	}
	now := recordOf(e.pod, e.granted, e.podLevel)
	if w := e.written; w != nil && w.Granted.Equal(now.Granted) && samePodLevel(w.PodLevel, now.PodLevel) {
		return
	}
	uid := e.pod.UID
	if err := checkpoint.Write(m.path(uid), now); err != nil {
		m.cfg.Logger.Error("allocation not recorded", "pod", e.pod.Namespace+"/"+e.pod.Name, "uid", uid, "err", err)
		return
	}
	e.written = &now
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
		m.cfg.Logger.Error("allocation record not removed", "uid", uid, "err", err)
	}
}

func (m *Manager) path(uid types.UID) string { return filepath.Join(m.cfg.Dir, fileName(uid)) }
