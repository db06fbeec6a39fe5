package prober

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

const (
	// savePeriod is the minimum interval between writes: after a crash of the agent, results
	// may be that old.
	savePeriod = time.Second

	// restoredExpiry is how long after a restart the results of containers that have not
	// been added again are kept.
	restoredExpiry = 10 * time.Minute
)

// A store preserves the results of readiness and startup probes over a restart of the agent.
// Liveness starts with success and needs no checkpoint. The Manager's mu guards all fields but
// path.
type store struct {
	path string

	// restored has the results from before the restart by container ID, after they were
	// loaded.
	restored map[string]resultRecord
	loaded   bool

	dirty bool
	wake  chan struct{} // of capacity 1: dirty was set
}

// A resultRecord has the results of a container: true for a success, nil if there is none.
type resultRecord struct {
	Startup   *bool `json:"startup,omitempty"`
	Readiness *bool `json:"readiness,omitempty"`
}

// of returns the field for a kind of probe.
func (r *resultRecord) of(k Kind) **bool {
	if k == Startup {
		return &r.Startup
	}
	return &r.Readiness
}

func newStore(cfg Config) store {
	return store{path: cfg.Path, wake: make(chan struct{}, 1)}
}

// changed records that the result of w has changed.
func (s *store) changed(w *worker) {
	if s.path != "" && w.kind != Liveness {
		s.dirty = true
		wake(s.wake)
	}
}

// restore reads the checkpoint. One that cannot be read counts as empty.
func (m *Manager) restore() map[string]resultRecord {
	var records map[string]resultRecord
	if m.cfg.Path == "" {
		return nil
	}
	if err := checkpoint.Read(m.cfg.Path, &records); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.cfg.Logger.Warn("Failed to read the probe results from before the restart; containers are probed again", "err", err)
		}
		return nil
	}
	return records
}

// loadLocked reads the checkpoint once.
func (m *Manager) loadLocked() {
	if !m.store.loaded {
		m.store.loaded, m.store.restored = true, m.restore()
	}
}

// restoredResults returns the results from before the restart of a pod that has not been added
// yet. After a restart the agent reports the status of pods before it adds them, because their
// volumes are mounted first.
func (m *Manager) restoredResults(uid types.UID) map[string]runtime.ProbeStatus {
	containers := map[string]runtime.ProbeStatus{}
	if m.cfg.Path == "" || m.cfg.Status == nil {
		return containers
	}
	observed, _ := m.cfg.Status(uid)
	if observed == nil {
		return containers
	}
	result := func(passed *bool) runtime.ProbeResult {
		switch {
		case passed == nil:
			return runtime.ProbeUnknown
		case *passed:
			return runtime.ProbeSuccess
		default:
			return runtime.ProbeFailure
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loadLocked()
	for i := range observed.Containers {
		c := &observed.Containers[i]
		if r, ok := m.store.restored[c.ID]; ok && c.State == runtime.ContainerRunning {
			containers[c.Name] = runtime.ProbeStatus{Startup: result(r.Startup), Readiness: result(r.Readiness)}
		}
	}
	return containers
}

// before returns the result of an instance from before the restart: from the checkpoint, or else
// from the pod status.
func (m *Manager) before(w *worker, id string) runtime.ProbeResult {
	if id == "" || w.kind == Liveness {
		return runtime.ProbeUnknown
	}
	passed := m.cfg.Status != nil && passedInStatus(w.pod.pod, w.container.Name, id, w.kind)
	if r, ok := m.store.restored[id]; ok {
		if p := *r.of(w.kind); p != nil {
			passed = *p
		}
	}
	if passed {
		return runtime.ProbeSuccess
	}
	return runtime.ProbeUnknown
}

// saveLoop writes the checkpoint after changes until ctx is done, and once more after that.
func (m *Manager) saveLoop(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-m.store.wake:
			m.save()
			select {
			case <-ctx.Done():
			case <-time.After(savePeriod):
			}
		}
	}
	m.save()
}

// save writes the checkpoint if results have changed.
func (m *Manager) save() {
	records, dirty := m.records(time.Now())
	if !dirty {
		return
	}
	if err := checkpoint.Write(m.cfg.Path, records); err != nil {
		m.cfg.Logger.Warn("Failed to write probe results; will retry with the next change", "err", err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.store.dirty = true
	}
}

// records returns the content of the checkpoint, and whether it has changed.
func (m *Manager) records(now time.Time) (map[string]resultRecord, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.store.dirty {
		return nil, false
	}
	m.store.dirty = false
	if now.Sub(m.began) > restoredExpiry {
		m.store.restored = nil
	}
	records := make(map[string]resultRecord, len(m.pods))
	for id, r := range m.store.restored {
		records[id] = r
	}
	for _, p := range m.pods {
		for _, w := range p.workers {
			if !w.state.hasResult || w.kind == Liveness || w.state.result == runtime.ProbeUnknown {
				continue
			}
			r := records[w.state.id]
			*r.of(w.kind) = new(w.state.result == runtime.ProbeSuccess)
			records[w.state.id] = r
		}
	}
	return records, true
}
