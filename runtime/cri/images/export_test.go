package images

// Failures returns the number of failed pulls that the manager keeps.
func (m *Manager) Failures() int {
	m.backoff.mu.Lock()
	defer m.backoff.mu.Unlock()
	return len(m.backoff.failures)
}
