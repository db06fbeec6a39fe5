package prober

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Manager probes the containers of pods, and keeps what came of it. Its
// methods may be called from any goroutine, and don't block.
type Manager struct {
	cfg Config
	ran runonce.Guard

	wake chan struct{} // of capacity 1: there is something for the loop to do
	made time.Time     // New: containers that started before are an earlier agent's

	// mu guards the fields below.
	mu     sync.Mutex
	began  time.Time // Run; zero before
	pods   map[types.UID]*watched
	looks  []*watched // to look at
	timers timers
	budget budget
	store  store

	followers []*follower
	removed   []removal   // to tell Hooks.Removed of
	deferred  []DeferInfo // to tell Hooks.Deferred of
}

// New returns a Manager for cfg, which probes nothing before Run. An error
// names the field of cfg that is wrong.
func New(cfg Config) (*Manager, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	return &Manager{
		cfg:    cfg,
		wake:   make(chan struct{}, 1),
		made:   time.Now(),
		pods:   make(map[types.UID]*watched),
		budget: newBudget(cfg),
		store:  newStore(cfg),
	}, nil
}

// Run probes until ctx ends, and returns nil when the runs that were under way
// have returned. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("prober: Manager"); err != nil {
		return err
	}
	m.mu.Lock()
	m.began = time.Now()
	m.loadLocked()
	for _, p := range m.pods {
		m.lookLocked(p)
	}
	m.mu.Unlock()

	var others sync.WaitGroup
	if m.cfg.Changed != nil {
		others.Go(func() { _ = m.Follow(ctx, m.cfg.Changed) })
	}
	if m.cfg.File != "" {
		others.Go(func() { m.saveLoop(ctx) })
	}
	m.loop(ctx)
	others.Wait()
	return nil
}

// unlock gives mu up, and tells the hooks what they could not be told before.
func (m *Manager) unlock() {
	removed, deferred := m.removed, m.deferred
	m.removed, m.deferred = nil, nil
	m.mu.Unlock()
	for _, r := range removed {
		m.cfg.Hooks.Removed(r.pod, r.container, r.kind)
	}
	for _, d := range deferred {
		m.cfg.Hooks.Deferred(d)
	}
}
