package cpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// Apply is how the manager reaches what runs. Both are called from Run's goroutine.
type Apply struct {
	// Containers returns those that run, of pods that this manager knows of.
	Containers func(ctx context.Context) ([]Container, error)

	// Update makes a running container run on these CPUs only. A container that
	// is gone is not an error.
	Update func(ctx context.Context, id string, cpus cpuset.CPUSet) error

	// Active reports whether a pod may still run here. What others have is freed.
	// Nil: of every pod.
	Active func(uid types.UID) bool
}

// A Container is one that runs.
type Container struct {
	PodUID types.UID
	Name   string
	ID     string
}

// ReconcileInfo is what a look at the containers came to.
type ReconcileInfo struct {
	Took    time.Duration
	Updated int
	Stale   int // still on CPUs that are not theirs (F-59)
	Error   error
}

// Run keeps containers on the CPUs that they may run on: every 10 seconds (cpu-8),
// and at once when the shared pool has changed (F-59). Without a policy it tells
// those that an earlier policy has pinned that they may run on any CPU, and then
// does nothing. It returns nil when ctx has ended. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("cpu: Manager"); err != nil {
		return err
	}
	ticker := time.NewTicker(reconcilePeriod)
	defer ticker.Stop()
	if m.hasPinned() { // nothing else will ever tell them
		m.poolChanged()
	}
	for m.looksAfter() {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-m.changed:
		}
		if err := m.Reconcile(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("containers can't be kept on their CPUs; it is tried again", "err", err)
		}
	}
	<-ctx.Done()
	return nil
}

// looksAfter reports whether there is anything to do about what runs.
func (m *Manager) looksAfter() bool {
	return m.cfg.Apply != nil && (m.cfg.Policy == Static || m.hasPinned())
}

func (m *Manager) hasPinned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pinned) > 0
}

// Reconcile is one look: it frees what inactive pods have, and tells those that run
// which CPUs are theirs, unless they were told before. Errors of some containers
// don't keep it from others. It must not be called while Run runs.
func (m *Manager) Reconcile(ctx context.Context) error {
	if !m.looksAfter() {
		return nil
	}
	begun := time.Now()
	info := ReconcileInfo{}
	if m.cfg.Apply.Active != nil {
		m.Retain(m.cfg.Apply.Active)
	}
	running, err := m.cfg.Apply.Containers(ctx)
	if err != nil {
		info.Error = fmt.Errorf("cpu: list the containers: %w", err)
	} else if m.cfg.Policy == Static {
		info.Error = m.tell(ctx, running, &info)
	} else {
		info.Error = m.unpin(ctx, running, &info)
	}
	info.Took = time.Since(begun)
	if m.cfg.Hooks.Reconciled != nil {
		m.cfg.Hooks.Reconciled(info)
	}
	return info.Error
}

func (m *Manager) tell(ctx context.Context, running []Container, info *ReconcileInfo) error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range running {
		seen[c.ID] = true
		cpus, _ := m.CPUs(c.PodUID, c.Name)
		if told, ok := m.told(c.ID); cpus.IsEmpty() || ok && told.Equals(cpus) {
			continue
		}
		if err := m.cfg.Apply.Update(ctx, c.ID, cpus); err != nil {
			info.Stale++
			errs = append(errs, fmt.Errorf("cpu: container %s of pod %s: %w", c.Name, c.PodUID, err))
			continue
		}
		info.Updated++
		m.tellDone(c.ID, cpus)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.given {
		if !seen[id] {
			delete(m.given, id)
		}
	}
	return errors.Join(errs...)
}

// unpin lets those run on any CPU that an earlier policy has pinned. When all are,
// the state says so.
func (m *Manager) unpin(ctx context.Context, running []Container, info *ReconcileInfo) error {
	var errs []error
	for _, c := range running {
		if !m.isPinned(c) {
			continue
		}
		if err := m.cfg.Apply.Update(ctx, c.ID, m.cfg.Machine.All()); err != nil {
			info.Stale++
			errs = append(errs, fmt.Errorf("cpu: container %s of pod %s: %w", c.Name, c.PodUID, err))
			continue
		}
		info.Updated++
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := m.replaceSaved(assignments{Policy: Static}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pinned = nil
	return nil
}

func (m *Manager) isPinned(c Container) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pinned[c.PodUID][c.Name]
}

func (m *Manager) told(id string) (cpuset.CPUSet, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cpus, ok := m.given[id]
	return cpus, ok
}

func (m *Manager) tellDone(id string, cpus cpuset.CPUSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given[id] = cpus
}
