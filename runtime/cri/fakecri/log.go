package fakecri

// beginLocked is called when a container starts to run, with r.mu held.
func (r *Runtime) beginLocked(c *container) {}

// ceaseLocked is called when a running container ends, with r.mu held, before
// its state changes.
func (r *Runtime) ceaseLocked(c *container) {}

// reopenLocked begins a new log file.
func (r *Runtime) reopenLocked(c *container) error { return nil }
