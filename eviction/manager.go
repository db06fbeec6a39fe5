package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Policy is what the operator decides. Its zero value enforces the limits of
	// local storage only.
	Policy Policy

	// Summary measures the node. Required. It is called by each pass with fresh set:
	// figures of the node and its pods as a whole should then not come from a cache
	// (ev-16). What it leaves out is not acted on. An error beside a summary means
	// that the summary is incomplete: signals without figures are not evaluated, and
	// pods without figures are not evicted (F-27). Calls don't overlap. One that has
	// not returned 5 seconds after its context ended is dropped, and fails all passes
	// until it returns.
	Summary func(ctx context.Context, fresh bool) (*statsapi.Summary, error)

	// SummaryTimeout ends the context of Summary; Memory and Layout have it as well,
	// each on its own. Too short a timeout leaves a slow node without evictions, too
	// long a one delays them if a call hangs. Zero: 2 minutes.
	SummaryTimeout time.Duration

	// Pods returns the pods of which something may run. Required. One that has
	// stopped, and whose volumes can't be given back, would be evicted again and
	// again in place of others. The pods are not changed.
	Pods func() []*v1.Pod

	// Kill ends a pod, and returns when nothing of it runs. Required. An error
	// means that it may run on; another pod then goes in its place, and this one
	// is left alone for HoldOff (F-22). It bounds its own time: the kubelet gives
	// a kill ten seconds, or half as much again as the grace period (ev-56).
	Kill func(ctx context.Context, e Eviction) error

	// Cleaned reports whether what the pod held has been given back. It is asked
	// each second, 30 seconds at most, before the next pass looks (ev-28). Nil:
	// a second is waited.
	Cleaned func(pod *v1.Pod) bool

	// Layout tells which file systems the node has. It is asked until it has
	// answered once; a pass fails when it does. Nil: [LayoutByStats].
	Layout func(ctx context.Context) (Layout, error)

	// Containers removes dead containers when a disk is low, with what GCPolicy
	// returns at that moment; for the kubelet that is its ordinary policy, with
	// all of the evicted pods' containers (ev-35). The pass waits for it: it must
	// bound its own time, as Images must. Nil: nobody does.
	Containers runtime.GarbageCollector
	GCPolicy   func() runtime.GCPolicy

	// Images deletes the images that no pod uses, when a disk is low (ev-36).
	// Nil: nobody does.
	Images func(ctx context.Context) error

	// ImageBytes is how much the images of a pod take. It is asked only where
	// images have a file system of their own. Nil: not known.
	ImageBytes func(ctx context.Context, pod *v1.Pod) int64

	// Memory measures how much memory is available, in place of the working set
	// (F-16): [MemAvailable] does by the kernel's word. Nil: the working set.
	Memory func(ctx context.Context) (MemoryFigure, error)

	// MachineMemory as in [Inputs].
	MachineMemory int64

	// Spare says which pods are to be spared, when it is about the node and not a
	// limit of their own. It is asked about every pod in every pass. Nil: none.
	Spare func(pod *v1.Pod) *Spare

	// Notifiers tell at once when memory runs low, by signal: memory.available and
	// allocatableMemory.available. Nil: the next pass finds it.
	Notifiers map[Signal]Notifier

	// Node is whom events of the node are about.
	Node v1.ObjectReference

	// Record takes events. It must not block. Nil: they are dropped.
	Record func(runtime.Event)

	// Random chooses among signals where Policy.Compat.RandomSignal leaves that to
	// chance. Nil: math/rand/v2.
	Random func() uint64

	// Period between passes that evict nobody. Zero: 10 seconds.
	Period time.Duration

	// HoldOff is how long a pod is left alone whose kill has failed. Zero: 1
	// minute.
	HoldOff time.Duration

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// A Manager keeps a node alive by evicting pods. Safe for concurrent use: passes are
// made one after the other.
type Manager struct {
	cfg Config
	ran runonce.Guard

	summaryCall, memoryCall, layoutCall guard

	wake chan struct{} // a Notifier has spoken
	turn chan struct{} // held by the pass that is under way

	// Of the pass that has the turn.
	layout    *Layout
	notified  time.Time // when the Notifiers were last told their levels
	announced []v1.NodeConditionType

	// mu guards the fields below.
	mu         sync.Mutex
	state      State
	conditions []v1.NodeConditionType
	held       map[types.UID]time.Time // until when

	// unmeasured is when the first of the measurements began that have all failed
	// since, of the last of which measureErr is the error. Zero: the last succeeded.
	unmeasured time.Time
	measureErr error
}

// Defaults (section 0.1).
const (
	defaultPeriod  = 10 * time.Second
	defaultHoldOff = time.Minute
	defaultTimeout = 2 * time.Minute // the kubelet's for requests to the runtime
	cleanWait      = 30 * time.Second
	cleanPoll      = time.Second
	refreshPeriod  = 10 * time.Second
	newsWait       = 15 * time.Second
	newsPoll       = time.Second
)

// New returns a Manager for cfg, or an error that names all that is missing or
// wrong. It starts nothing.
func New(cfg Config) (*Manager, error) {
	var errs []error
	if cfg.Summary == nil {
		errs = append(errs, errors.New("Config.Summary is nil"))
	}
	if cfg.Pods == nil {
		errs = append(errs, errors.New("Config.Pods is nil"))
	}
	if cfg.Kill == nil {
		errs = append(errs, errors.New("Config.Kill is nil"))
	}
	if cfg.Containers != nil && cfg.GCPolicy == nil {
		errs = append(errs, errors.New("Config.GCPolicy is nil, and Config.Containers is not"))
	}
	if cfg.Period < 0 || cfg.HoldOff < 0 || cfg.SummaryTimeout < 0 {
		errs = append(errs, fmt.Errorf("a period below zero: Period %v, HoldOff %v, SummaryTimeout %v", cfg.Period, cfg.HoldOff, cfg.SummaryTimeout))
	}
	if err := errors.Join(append(errs, cfg.Policy.check())...); err != nil {
		return nil, fmt.Errorf("eviction: %w", err)
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	if cfg.Period == 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.SummaryTimeout == 0 {
		cfg.SummaryTimeout = defaultTimeout
	}
	if cfg.HoldOff == 0 {
		cfg.HoldOff = defaultHoldOff
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Hooks.fill()
	return &Manager{
		cfg: cfg, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), held: map[types.UID]time.Time{},
	}, nil
}

// Run makes a pass each period, at once after a Notifier's call, and at once after a
// pass that evicted a pod and got back what it used. It returns nil when ctx is done. A
// pass that fails is logged and repeated. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("eviction: Manager"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if m.cfg.Policy.idle() {
		<-ctx.Done()
		return nil
	}
	for signal, notifier := range m.cfg.Notifiers {
		wg.Go(func() { m.listen(ctx, signal, notifier) })
	}
	for ctx.Err() == nil {
		result, err := m.Pass(ctx)
		if err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("Failed to measure the node's resources, pods may not be evicted in time; will retry", "err", err)
		}
		if len(result.Evicted) > 0 {
			m.awaitCleaned(ctx, result.Evicted)
			continue
		}
		// Who speaks without end gets a pass in a while, not one after the other.
		if pause.For(ctx, min(leastPause, m.cfg.Period)) != nil {
			return nil
		}
		rest := time.NewTimer(m.cfg.Period - min(leastPause, m.cfg.Period))
		select {
		case <-ctx.Done():
		case <-rest.C:
		case <-m.wake:
		}
		rest.Stop()
	}
	return nil
}

// leastPause is between two passes, whoever asks for them.
const leastPause = 100 * time.Millisecond

// awaitCleaned waits until what the evicted held is given back (ev-28).
func (m *Manager) awaitCleaned(ctx context.Context, evicted []Eviction) {
	for waited := time.Duration(0); waited < cleanWait; waited += cleanPoll {
		if pause.For(ctx, cleanPoll) != nil {
			return
		}
		if m.cfg.Cleaned == nil || !slices.ContainsFunc(evicted, func(e Eviction) bool { return !m.cfg.Cleaned(e.Pod) }) {
			return
		}
	}
	m.cfg.Logger.Warn("what evicted pods held is not given back yet", "pods", len(evicted), "waited", cleanWait)
}

// Conditions returns which of MemoryPressure, DiskPressure and PIDPressure are
// true of the node, sorted. The caller owns the result.
func (m *Manager) Conditions() []v1.NodeConditionType {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.conditions)
}

// Under reports whether the node is under such a pressure.
func (m *Manager) Under(pressure v1.NodeConditionType) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.conditions, pressure)
}

// Policy returns the policy that passes are made with. Its slices must not be changed.
func (m *Manager) Policy() Policy { return m.cfg.Policy }

// Admit implements podworker.Admitter: it is [Policy.Admit] with the present
// conditions of the node.
func (m *Manager) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	return m.cfg.Policy.Admit(pod, m.Conditions())
}
