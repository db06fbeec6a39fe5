package images

// Failures is how many failed pulls are remembered.
func (m *Manager) Failures() int {
	m.backoff.mu.Lock()
	defer m.backoff.mu.Unlock()
	return len(m.backoff.failures)
}
