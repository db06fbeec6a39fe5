package runtimetest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Start starts a new instance of the container, as if another agent had done so,
// and returns its ID. A pod that does not exist is created, named after its UID,
// in namespace default. If an instance runs already, there are two.
func (r *Runtime) Start(uid types.UID, container string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.podLocked(uid, string(uid), v1.NamespaceDefault)
	sb := p.readySandbox()
	if sb == nil {
		sb = r.newSandboxLocked(p, false)
	}
	c := &v1.Container{Name: container, Image: container}
	return r.runLocked(p, sb.ID, c, r.behaviorLocked(c)).status.ID
}

// Exit makes the newest running instance of the container exit with the code. It
// returns an error if none runs.
func (r *Runtime) Exit(uid types.UID, container string, code int32) error {
	return r.on(uid, container, func(v *instance) { r.exitLocked(v, code, "") })
}

// OOM makes the newest running instance of the container exit with code 137 and the reason
// OOMKilled, as the kernel does if it exceeds its memory limit. It returns an error if none
// runs.
func (r *Runtime) OOM(uid types.UID, container string) error {
	return r.on(uid, container, func(v *instance) { r.exitLocked(v, exitKILL, "OOMKilled") })
}

// Hang makes the newest running instance of the container ignore SIGTERM and
// cancels its pending exit. SIGKILL and Exit still terminate it. It returns an
// error if none runs.
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

// Crash has the effect of a reboot or of the loss of the pod's sandbox: its
// containers exit with 137, and its sandbox is not ready. It does nothing if the
// pod does not exist.
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

// Remove deletes all containers and sandboxes of the pod, running or not, as an
// operator can with crictl.
func (r *Runtime) Remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		r.crashLocked(p) // unblocks waiting calls of KillPod
		r.removeLocked(p, func(*instance) bool { return true }, func(*runtime.SandboxStatus) bool { return true })
	}
}

// SetHealth sets the result of Check.
func (r *Runtime) SetHealth(h runtime.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health = h
}
