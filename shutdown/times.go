package shutdown

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// StateFile is the name of the kubelet's checkpoint of the last shutdown in its root
// directory.
const StateFile = "graceful_node_shutdown_state"

// shutdownTimes is the content of the checkpoint. Unknown times are zero.
type shutdownTimes struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// saveTimes reports the times of a shutdown and writes them to the checkpoint.
func (m *Manager) saveTimes(start, end time.Time) {
	m.setTimes(start, end)
	if m.cfg.Path == "" {
		return
	}
	text, err := json.Marshal(shutdownTimes{start.UTC(), end.UTC()})
	if err == nil {
		err = checkpoint.Replace(m.cfg.Path, text, 0o644)
	}
	if err != nil {
		m.cfg.Logger.Warn("Failed to write the times of the shutdown; they are lost with the agent", "err", err)
	}
}

func (m *Manager) setTimes(start, end time.Time) {
	m.mu.Lock()
	m.started, m.ended = start, end
	m.mu.Unlock()
	m.cfg.Hooks.Times(start, end)
}

// Times returns when the last shutdown started and when all pods had terminated, zero while they
// have not. Both are zero if there was no shutdown.
func (m *Manager) Times() (start, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started, m.ended
}

// loadTimes reads and reports the times of the last shutdown, if there was one.
func (m *Manager) loadTimes() {
	if m.cfg.Path == "" {
		return
	}
	var last shutdownTimes
	text, err := os.ReadFile(m.cfg.Path)
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	switch {
	case err == nil && !last.StartTime.IsZero():
		m.setTimes(last.StartTime, last.EndTime)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		m.cfg.Logger.Warn("Failed to read the times of the last shutdown; they are not reported", "err", err)
	}
}
