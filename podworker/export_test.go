package podworker

// Settle and Sweep are the synchronous steps of Loop.Run.
func (l *Loop) Settle() { l.settle() }

// Sweep terminates orphaned pods.
func (l *Loop) Sweep() { l.terminateOrphans() }
