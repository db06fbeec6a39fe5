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
	// saveEvery is how often results are written at most: a restart of the
	// agent may find what is that old.
	saveEvery = time.Second

	// claimIn is how long results of containers that nobody has asked to
	// probe again are kept after a restart.
	claimIn = 10 * time.Minute
)

// A store keeps results beyond the life of the agent (F-01): those of readiness
// and startup. Liveness starts anew, for it begins with success. The Manager's
// mu guards it, the path aside.
type store struct {
	path string

	// restored is what an earlier life has left, by container ID, once it was
	// loaded.
	restored map[string]record
	loaded   bool

	dirty bool
	wake  chan struct{} // of capacity 1: it has become so
}

// A record is what is kept of a container: whether the probes had succeeded, as
// far as they had said anything.
type record struct {
	Startup   *bool `json:"startup,omitempty"`
	Readiness *bool `json:"readiness,omitempty"`
}

// of returns the part of r for that kind of probe.
func (r *record) of(k Kind) **bool {
	if k == Startup {
		return &r.Startup
	}
	return &r.Readiness
}

func newStore(cfg Config) store {
	return store{path: cfg.File, wake: make(chan struct{}, 1)}
}

// note notes that the result of w is another one.
func (s *store) note(w *worker) {
	if s.path != "" && w.kind != Liveness {
		s.dirty = true
		edge(s.wake)
	}
}

// restore returns what an earlier life has left in the file. A file that cannot be
// read is as good as none: probes find out anew.
func (m *Manager) restore() map[string]record {
	var records map[string]record
	if m.cfg.File == "" {
		return nil
	}
	if err := checkpoint.Read(m.cfg.File, &records); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.cfg.Logger.Warn("results of probes from before the restart are lost", "err", err)
		}
		return nil
	}
	return records
}

// loadLocked has the file read, once.
func (m *Manager) loadLocked() {
	if !m.store.loaded {
		m.store.loaded, m.store.restored = true, m.restore()
	}
}

// earlier returns what an earlier life has left of the containers of a pod that
// is not probed yet. An agent that starts has to say how its pods are before it
// may probe them: their volumes come first (sl-36).
func (m *Manager) earlier(uid types.UID) map[string]runtime.ProbeStatus {
	containers := map[string]runtime.ProbeStatus{}
	if m.cfg.File == "" || m.cfg.Status == nil {
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

// before returns what was said of an instance in an earlier life: by the file,
// or else by the status that the pod came with.
func (m *Manager) before(w *worker, id string) runtime.ProbeResult {
	if id == "" || w.kind == Liveness {
		return runtime.ProbeUnknown
	}
	passed := m.cfg.Status != nil && said(w.of.pod, w.container.Name, id, w.kind)
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

// saveLoop writes the file when there is something new, now and then, until ctx
// ends, and once more then.
func (m *Manager) saveLoop(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-m.store.wake:
			m.save()
			select {
			case <-ctx.Done():
			case <-time.After(saveEvery):
			}
		}
	}
	m.save()
}

// save writes the file, if there is anything new.
func (m *Manager) save() {
	records, dirty := m.records(time.Now())
	if !dirty {
		return
	}
	if err := checkpoint.Write(m.cfg.File, records); err != nil {
		m.cfg.Logger.Warn("cannot keep results of probes", "err", err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.store.dirty = true // the next change tries again
	}
}

// records returns what is to be kept, and whether it has changed.
func (m *Manager) records(now time.Time) (map[string]record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.store.dirty {
		return nil, false
	}
	m.store.dirty = false
	if now.Sub(m.began) > claimIn {
		m.store.restored = nil
	}
	records := make(map[string]record, len(m.pods))
	for id, r := range m.store.restored {
		records[id] = r
	}
	for _, p := range m.pods {
		for _, w := range p.workers {
			if !w.state.known || w.kind == Liveness || w.state.result == runtime.ProbeUnknown {
				continue
			}
			r := records[w.state.id]
			*r.of(w.kind) = new(w.state.result == runtime.ProbeSuccess)
			records[w.state.id] = r
		}
	}
	return records, true
}
