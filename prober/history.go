package prober

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Run is what is remembered of one run of a probe.
type Attempt struct {
	At     time.Time // it began
	Took   time.Duration
	Result runtime.ProbeResult // ProbeUnknown if Err
	Err    bool                // it could not be carried out, and had no effect

	// Output of a run that was not a plain success, up to 1 KiB.
	Output string
}

// History returns the last runs of a probe, oldest first, also those on
// instances of the container that are gone (F-08).
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

// remember adds a run to the last most.
func (w *worker) remember(r Attempt, most int) {
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
