package cpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// A Runtime accesses the running containers; managers.CRI implements its first two methods.
// Run's goroutine calls it.
type Runtime interface {
	// Containers returns the running containers of the pods on this node.
	Containers(ctx context.Context) ([]Container, error)

	// UpdateCPUs restricts a running container to the CPUs. It is not an error if the
	// container has terminated.
	UpdateCPUs(ctx context.Context, id string, cpus cpuset.CPUSet) error

	// Active reports whether containers of a pod may still run. The CPUs of other pods are
	// released.
	Active(pod types.UID) bool
}

// A Container is a running container.
type Container struct {
	PodUID types.UID
	Name   string
	ID     string
}

// ReconcileInfo is the result of Reconcile.
type ReconcileInfo struct {
	Took    time.Duration
	Updated int
	Stale   int // containers whose update failed
	Error   error
}

// Run applies the CPUs of running containers every 10 seconds and when the shared pool
// changes. With the policy none it unpins the containers that an earlier policy
// restricted and then does nothing. It blocks until ctx is done and returns nil. A second
// call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("cpu: Manager"); err != nil {
		return err
	}
	ticker := time.NewTicker(reconcilePeriod)
	defer ticker.Stop()
	if m.hasPinned() { // the pool never changes with the policy none
		m.poolChanged()
	}
	for m.reconciles() {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-m.changed:
		}
		if err := m.Reconcile(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("Failed to apply the CPUs of containers; will retry", "err", err)
		}
	}
	<-ctx.Done()
	return nil
}

// reconciles reports whether Reconcile has anything to do.
func (m *Manager) reconciles() bool {
	return m.cfg.Runtime != nil && (m.cfg.Policy == Static || m.hasPinned())
}

func (m *Manager) hasPinned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pinned) > 0
}

// Reconcile releases the CPUs of inactive pods and updates the running containers whose
// CPUs differ from those last applied. An error of one container does not prevent the
// updates of others. It must not be called while Run runs.
func (m *Manager) Reconcile(ctx context.Context) error {
	if !m.reconciles() {
		return nil
	}
	begun := time.Now()
	info := ReconcileInfo{}
	m.Retain(m.cfg.Runtime.Active)
	running, err := m.cfg.Runtime.Containers(ctx)
	if err != nil {
		info.Error = fmt.Errorf("cpu: list containers: %w", err)
	} else if m.cfg.Policy == Static {
		info.Error = m.update(ctx, running, &info)
	} else {
		info.Error = m.unpin(ctx, running, &info)
	}
	info.Took = time.Since(begun)
	if m.cfg.Hooks.Reconciled != nil {
		m.cfg.Hooks.Reconciled(info)
	}
	return info.Error
}

func (m *Manager) update(ctx context.Context, running []Container, info *ReconcileInfo) error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range running {
		seen[c.ID] = true
		cpus, _ := m.CPUs(c.PodUID, c.Name)
		if applied, ok := m.applied(c.ID); cpus.IsEmpty() || ok && applied.Equals(cpus) {
			continue
		}
		if err := m.cfg.Runtime.UpdateCPUs(ctx, c.ID, cpus); err != nil {
			info.Stale++
			errs = append(errs, fmt.Errorf("cpu: update container %q of pod %s: %w", c.Name, c.PodUID, err))
			continue
		}
		info.Updated++
		m.setApplied(c.ID, cpus)
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

// unpin removes the CPU restrictions of an earlier policy, and replaces the checkpoint
// when no container has any.
func (m *Manager) unpin(ctx context.Context, running []Container, info *ReconcileInfo) error {
	var errs []error
	for _, c := range running {
		if !m.isPinned(c) {
			continue
		}
		if err := m.cfg.Runtime.UpdateCPUs(ctx, c.ID, m.cfg.Machine.All()); err != nil {
			info.Stale++
			errs = append(errs, fmt.Errorf("cpu: update container %q of pod %s: %w", c.Name, c.PodUID, err))
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

func (m *Manager) applied(id string) (cpuset.CPUSet, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cpus, ok := m.given[id]
	return cpus, ok
}

func (m *Manager) setApplied(id string, cpus cpuset.CPUSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given[id] = cpus
}
