package device

import "fmt"

// Changes of the ledger are counted by version. The state is written without mu, by one
// goroutine at a time: a slow disk delays only the calls whose change must be on it.

// touchLocked counts a change of the ledger that must be saved.
func (m *Manager) touchLocked() (version uint64) {
	m.version++
	return m.version
}

// commit returns once the state of that version, or a later one, is on disk. If it
// cannot be written, undo is called, with mu held, before anything else is written.
func (m *Manager) commit(version uint64, undo func()) error {
	m.disk <- struct{}{}
	err := m.write(version, undo)
	<-m.disk
	if err == nil {
		m.save() // changes of other calls in the meantime
	}
	return err
}

// save writes what is not on disk yet. If something is being written already that
// goroutine writes it afterwards, and save returns at once. A failure to write is
// logged, and the next call writes again.
func (m *Manager) save() {
	for {
		m.mu.Lock()
		version, clean := m.version, m.version == m.saved
		m.mu.Unlock()
		if clean {
			return
		}
		select {
		case m.disk <- struct{}{}:
		default:
			return
		}
		err := m.write(version, nil)
		<-m.disk
		if err != nil {
			m.cfg.Logger.Error("Failed to save checkpoint of devices; will retry", "err", err)
			return
		}
	}
}

// write writes the state unless that version is on disk. The caller must hold the
// token of m.disk.
func (m *Manager) write(version uint64, undo func()) error {
	m.mu.Lock()
	if m.saved >= version {
		m.mu.Unlock()
		return nil
	}
	version, record := m.version, m.ledger.encode()
	m.mu.Unlock()
	err := m.cfg.Store.Save(record)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if undo != nil {
			undo()
			m.touchLocked()
		}
		return fmt.Errorf("device: save checkpoint: %w", err)
	}
	m.saved = version
	return nil
}
