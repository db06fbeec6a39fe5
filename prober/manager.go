package prober

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Manager probes the containers of pods and stores the results. Its methods are safe for
// concurrent use and do not block, except Run and Follow.
type Manager struct {
	cfg Config
	ran runonce.Guard

	wake chan struct{} // of capacity 1: the loop has something to do
	made time.Time     // time of New; containers that started earlier were started by an earlier agent

	// mu guards the fields below.
	mu     sync.Mutex
	began  time.Time // start of Run; zero before
	pods   map[types.UID]*probedPod
	queue  []*probedPod // to be inspected
	timers timers
	budget budget
	store  store

	followers []*follower
	removed   []hookCall // of Hooks.Removed, made by unlock
	deferred  []hookCall // of Hooks.Deferred, made by unlock
}

// New returns a Manager, or an error that names an invalid field of cfg. No probe runs before
// Run.
func New(cfg Config) (*Manager, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Manager{
		cfg:    cfg,
		wake:   make(chan struct{}, 1),
		made:   time.Now(),
		pods:   make(map[types.UID]*probedPod),
		budget: newBudget(cfg),
		store:  newStore(cfg),
	}, nil
}

// Run runs the probes until ctx is done, and returns nil when the attempts in progress have
// returned. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("prober: Manager"); err != nil {
		return err
	}
	m.mu.Lock()
	m.began = time.Now()
	m.loadLocked()
	for _, p := range m.pods {
		m.inspectLocked(p)
	}
	m.mu.Unlock()

	var others sync.WaitGroup
	if m.cfg.Changed != nil {
		others.Go(func() { _ = m.Follow(ctx, m.cfg.Changed) })
	}
	if m.cfg.Path != "" {
		others.Go(func() { m.saveLoop(ctx) })
	}
	m.loop(ctx)
	others.Wait()
	return nil
}

// unlock releases mu and calls the hooks that could not be called with it.
func (m *Manager) unlock() {
	removed, deferred := m.removed, m.deferred
	m.removed, m.deferred = nil, nil
	m.mu.Unlock()
	for _, r := range removed {
		m.cfg.Hooks.Removed(r.pod, r.container, r.kind)
	}
	for _, d := range deferred {
		m.cfg.Hooks.Deferred(d.pod, d.container, d.kind)
	}
}
