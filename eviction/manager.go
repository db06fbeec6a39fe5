package eviction

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Manager evicts pods when the node runs low on resources. Safe for concurrent use:
// passes do not overlap.
type Manager struct {
	cfg Config
	ran runonce.Guard

	summaryCall, memoryCall, layoutCall guard

	wake chan struct{} // receives when a Notifier requests a pass
	turn chan struct{} // holds a token while a pass is in progress

	// The pass in progress owns the fields below.
	layout   *layout
	notified time.Time // when the levels of the Notifiers were last updated

	// mu guards the fields below.
	mu         sync.Mutex
	last       *Plan // of the last pass; nil before the first
	conditions []v1.NodeConditionType
	backoff    map[types.UID]time.Time // pods whose kill failed are not retried before this time

	// unmeasured is when the first of the consecutive failed measurements began, measureErr
	// the error of the last. Zero: the last measurement succeeded.
	unmeasured time.Time
	measureErr error
}

const (
	cleanWait     = 30 * time.Second
	cleanPoll     = time.Second
	refreshPeriod = 10 * time.Second
	remeasureWait = 15 * time.Second
	remeasurePoll = time.Second
	leastPause    = 100 * time.Millisecond // between two passes, also if a Notifier requests them
)

// New returns a Manager, or an error that names every missing or invalid field of cfg. It
// starts no goroutine.
func New(cfg Config) (*Manager, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("eviction: %w", err)
	}
	cfg.setDefaults()
	return &Manager{
		cfg: cfg, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), backoff: map[types.UID]time.Time{},
	}, nil
}

// Run makes a pass every period, when a Notifier requests one, and after a pass that
// evicted a pod as soon as its resources were released. It blocks until ctx is done and
// returns nil. A pass that fails is logged and retried. A second call returns an error.
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
		// A Notifier that fires continuously must not cause passes without a pause.
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

// awaitCleaned waits until the resources of the evicted pods are released.
func (m *Manager) awaitCleaned(ctx context.Context, evicted []Victim) {
	for waited := time.Duration(0); waited < cleanWait; waited += cleanPoll {
		if pause.For(ctx, cleanPoll) != nil {
			return
		}
		if !slices.ContainsFunc(evicted, func(v Victim) bool { return !m.cfg.Pods.Cleaned(v.Pod.UID) }) {
			return
		}
	}
	m.cfg.Logger.Warn("Resources of evicted pods were not released in time; will evaluate the thresholds again", "pods", len(evicted), "waited", cleanWait)
}

// Conditions returns which of MemoryPressure, DiskPressure and PIDPressure are
// true of the node, sorted. The caller owns the result.
func (m *Manager) Conditions() []v1.NodeConditionType {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.conditions)
}

// Under reports whether the node has the given pressure condition.
func (m *Manager) Under(pressure v1.NodeConditionType) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.conditions, pressure)
}

// Policy returns the policy, with defaults filled in. The caller must not modify its
// slices and maps.
func (m *Manager) Policy() Policy { return m.cfg.Policy }

// Admit implements pipeline.Admitter: it is [Policy.Admit] with the current conditions of
// the node.
func (m *Manager) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	return m.cfg.Policy.Admit(pod, m.Conditions())
}
