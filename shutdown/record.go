package shutdown

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// StateFile is what the kubelet calls the record of the last shutdown, below its
// root (sh-11).
const StateFile = "graceful_node_shutdown_state"

// record is what is in it. A time that is not known is the zero time.
type record struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// keepTimes tells of the times of a shutdown, and keeps them for the next agent.
func (m *Manager) keepTimes(start, end time.Time) {
	m.setTimes(start, end)
	if m.cfg.File == "" {
		return
	}
	text, err := json.Marshal(record{start.UTC(), end.UTC()})
	if err == nil {
		err = checkpoint.Replace(m.cfg.File, text, 0o644)
	}
	if err != nil {
		m.cfg.Logger.Warn("the times of the shutdown are not recorded", "err", err)
	}
}

func (m *Manager) setTimes(start, end time.Time) {
	m.mu.Lock()
	m.start, m.over = start, end
	m.mu.Unlock()
	m.cfg.Hooks.Times(start, end)
}

// Times are when the last shutdown began and when all pods had ended, zero while they
// have not; both are zero if none is known of (sh-11).
func (m *Manager) Times() (start, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.start, m.over
}

// tellLast tells of the last shutdown, if there was one.
func (m *Manager) tellLast() {
	if m.cfg.File == "" {
		return
	}
	var last record
	text, err := os.ReadFile(m.cfg.File)
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	switch {
	case err == nil && !last.StartTime.IsZero():
		m.setTimes(last.StartTime, last.EndTime)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		m.cfg.Logger.Warn("the times of the last shutdown cannot be read", "err", err)
	}
}
