package prober

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Attempt describes a past attempt of a probe.
type Attempt struct {
	At       time.Time // start
	Duration time.Duration
	Result   runtime.ProbeResult // ProbeUnknown if Err
	Err      bool                // the attempt could not be carried out and had no effect

	// Output of the attempt, up to 1 KiB. Empty for a success without warning.
	Output string
}

// History returns the last attempts of a probe, the oldest first, including those on earlier
// instances of the container.
func (m *Manager) History(uid types.UID, container string, kind Kind) []Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		for _, w := range p.workers {
			if w.container.Name == container && w.kind == kind {
				return slices.Clone(w.history)
			}
		}
	}
	return nil
}

// addHistory appends an attempt and keeps the last most.
func (w *worker) addHistory(r Attempt, most int) {
	switch {
	case most == 0:
		return
	case w.history == nil:
		w.history = make([]Attempt, 0, most)
	case len(w.history) == most:
		w.history = append(w.history[:0], w.history[1:]...)
	}
	w.history = append(w.history, r)
}
