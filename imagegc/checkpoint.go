package imagegc

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// imageCheckpoint is the content of the file at Config.Path.
type imageCheckpoint struct {
	// Since is when image garbage collection first ran.
	Since time.Time `json:"since"`

	Images []imageRecord `json:"images"`
}

type imageRecord struct {
	ID       string    `json:"id"`
	Handler  string    `json:"handler,omitempty"`
	Name     string    `json:"name,omitempty"` // informational
	First    time.Time `json:"firstDetected"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	PulledBy string    `json:"pulledBy,omitempty"`
}

// load reads the checkpoint once. Without it, or if it cannot be read, all images count as new
// and are kept longer.
func (m *Manager) load(now time.Time) {
	if m.loaded {
		return
	}
	m.loaded = true
	if m.cfg.Path != "" {
		var c imageCheckpoint
		switch err := checkpoint.Read(m.cfg.Path, &c); {
		case err == nil:
			m.since = c.Since
			for _, r := range c.Images {
				m.records = append(m.records, Record{
					Image:         runtime.Image{ID: r.ID, RuntimeHandler: r.Handler},
					FirstDetected: r.First, LastUsed: r.LastUsed, PulledBy: r.PulledBy,
				})
			}
		case !errors.Is(err, fs.ErrNotExist):
			m.cfg.Logger.Error("Failed to read the image checkpoint; image ages start from zero", "err", err)
		}
	}
	if m.since.IsZero() || m.since.After(now) {
		m.since = now
	}
}

// save writes the checkpoint.
func (m *Manager) save() {
	if m.cfg.Path == "" {
		return
	}
	c := imageCheckpoint{Since: m.since.UTC(), Images: make([]imageRecord, len(m.records))}
	for i := range m.records {
		r := &m.records[i]
		c.Images[i] = imageRecord{
			ID: r.Image.ID, Handler: r.Image.RuntimeHandler, Name: r.name(),
			First: r.FirstDetected.UTC(), LastUsed: utc(r.LastUsed), PulledBy: r.PulledBy,
		}
	}
	slices.SortFunc(c.Images, func(a, b imageRecord) int { return a.First.Compare(b.First) })
	if err := checkpoint.Write(m.cfg.Path, c); err != nil {
		m.cfg.Logger.Error("Failed to write the image checkpoint; image ages may be lost in a restart", "err", err)
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
