package imagegc

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// memory is what the file at Config.Path holds (F-28).
type memory struct {
	// Since when images have been looked after.
	Since time.Time `json:"since"`

	Images []remembered `json:"images"`
}

type remembered struct {
	ID       string    `json:"id"`
	Handler  string    `json:"handler,omitempty"`
	Name     string    `json:"name,omitempty"` // for people
	First    time.Time `json:"firstDetected"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	PulledBy string    `json:"pulledBy,omitempty"`
}

// load reads what an earlier agent knew, once. Without it, or where it cannot be
// read, images are as new as this agent: they stay longer, which harms nobody.
func (m *Manager) load(now time.Time) {
	if m.loaded {
		return
	}
	m.loaded = true
	if m.cfg.Path != "" {
		var known memory
		switch err := checkpoint.Read(m.cfg.Path, &known); {
		case err == nil:
			m.since = known.Since
			for _, r := range known.Images {
				m.records = append(m.records, Record{
					Image:         runtime.Image{ID: r.ID, RuntimeHandler: r.Handler},
					FirstDetected: r.First, LastUsed: r.LastUsed, PulledBy: r.PulledBy,
				})
			}
		case !errors.Is(err, fs.ErrNotExist):
			m.failed("the record of images cannot be read; their ages begin anew", err)
		}
	}
	if m.since.IsZero() || m.since.After(now) {
		m.since = now
	}
}

// save writes what is known for the next agent.
func (m *Manager) save() {
	if m.cfg.Path == "" {
		return
	}
	known := memory{Since: m.since.UTC(), Images: make([]remembered, len(m.records))}
	for i := range m.records {
		r := &m.records[i]
		known.Images[i] = remembered{
			ID: r.Image.ID, Handler: r.Image.RuntimeHandler, Name: r.name(),
			First: r.FirstDetected.UTC(), LastUsed: utc(r.LastUsed), PulledBy: r.PulledBy,
		}
	}
	slices.SortFunc(known.Images, func(a, b remembered) int { return a.First.Compare(b.First) })
	if err := checkpoint.Write(m.cfg.Path, known); err != nil {
		m.failed("the record of images cannot be written", err)
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

func (m *Manager) failed(message string, err error) {
	m.cfg.Logger.Error(message, "err", err)
	if m.cfg.Hooks.Failed != nil {
		m.cfg.Hooks.Failed(err)
	}
}
