package fakecri

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/broadcast"
)

// Down stops the daemon, as a kill of its process does: calls in progress and later ones
// fail with Unavailable, and streams of events end. Sandboxes and containers continue.
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
	r.events = new(broadcast.Sender[*runtimeapi.ContainerEventResponse])
	for c := range r.containers.all() {
		c.starting = 0 // it remains created
	}
}

// Up starts the daemon again, with the current state.
func (r *Runtime) Up() {
	r.mu.Lock()
	defer r.unlock()
	r.down = false
}

// Reboot restarts the machine and the daemon: no sandbox is ready, and running containers
// have exited with 255 and reason Unknown, as in containerd. Created containers remain
// created but cannot be started.
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
