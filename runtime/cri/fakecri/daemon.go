package fakecri

// Down ends the daemon, as a kill of its process does: calls under way and those
// to come fail with Unavailable, streams of events end. Sandboxes and containers
// go on, and end as they would.
func (r *Runtime) Down() {
	r.mu.Lock()
	defer r.unlock()
	r.downLocked()
}

func (r *Runtime) downLocked() {
	r.down = true
	for _, cancel := range r.inflight {
		cancel(errDown)
	}
	clear(r.inflight)
	clear(r.watchers)
	for c := range r.containers.all() {
		c.starting = 0 // still created, when the daemon is back
	}
}

// Up starts the daemon again, which knows what has happened since.
func (r *Runtime) Up() {
	r.mu.Lock()
	defer r.unlock()
	r.down = false
}

// Reboot restarts the machine, and the daemon, which is up then: no sandbox is
// ready, and what ran has exited with 255 and reason Unknown, as containerd has
// it. What was created still is, and cannot be started.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.unlock()
	r.downLocked()
	for c := range r.containers.all() {
		if c.running() {
			r.endLocked(c, codeUnknown, "Unknown")
		}
	}
	for s := range r.sandboxes.all() {
		r.stopSandboxLocked(s)
	}
	r.down = false
}
