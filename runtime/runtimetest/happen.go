package runtimetest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Start starts a new instance of the container, as if an agent had done so
// earlier or behind the caller's back, and returns its ID. A pod that does not
// exist is made, named after its UID, in namespace default. Start does not look
// at whether an instance runs already: this is the way to get two.
func (r *Runtime) Start(uid types.UID, container string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.podLocked(uid, string(uid), v1.NamespaceDefault)
	sb := p.readySandbox()
	if sb == nil {
		sb = r.newSandboxLocked(p, false)
	}
	c := &v1.Container{Name: container, Image: container}
	return r.runLocked(p, sb.ID, c, r.behaviourLocked(c)).status.ID
}

// Exit has the newest running instance of the container exit with the code. It
// is an error if none runs.
func (r *Runtime) Exit(uid types.UID, container string, code int32) error {
	return r.on(uid, container, func(v *instance) { r.exitLocked(v, code, "") })
}

// Hang has the newest running instance of the container ignore TERM from now
// on; what it would have done by itself does not happen either. Kill and Exit
// still end it. It is an error if none runs.
func (r *Runtime) Hang(uid types.UID, container string) error {
	return r.on(uid, container, func(v *instance) {
		v.stubborn = true
		if v.timer != nil {
			v.timer.Stop()
			v.timer = nil
		}
	})
}

func (r *Runtime) on(uid types.UID, container string, do func(*instance)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		if v := p.running(container); v != nil {
			do(v)
			return nil
		}
	}
	return fmt.Errorf("runtimetest: no container %s runs in pod %s", container, uid)
}

// Crash does to the pod what a reboot or the loss of its sandbox does: its
// containers are dead with 137, its network is gone. A pod that does not exist
// is left so.
func (r *Runtime) Crash(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		r.crashLocked(p)
	}
}

func (r *Runtime) crashLocked(p *pod) {
	for _, v := range p.containers {
		r.exitLocked(v, exitKILL, "")
	}
	r.stopSandboxesLocked(p)
}

// Remove takes all of the pod away at once, running or not, as an operator
// with the runtime's own tool can.
func (r *Runtime) Remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		r.crashLocked(p) // ends what waits for them
		r.removeLocked(p, func(*instance) bool { return true }, func(*runtime.SandboxStatus) bool { return true })
	}
}

// SetHealth sets what Check answers.
func (r *Runtime) SetHealth(h runtime.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health = h
}
