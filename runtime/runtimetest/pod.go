package runtimetest

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A pod has at least one sandbox or container; it is removed with the last of
// them.
type pod struct {
	uid             types.UID
	name, namespace string
	source          string

	// sandboxes and containers, oldest first, in the order of their creation:
	// in a synctest bubble all may have the same time.
	sandboxes  []*runtime.SandboxStatus
	containers []*instance

	// attempts is the number of instances of each container so far, including
	// removed ones.
	attempts map[string]int32

	// grace is the grace period in seconds as of the last start, for a
	// KillRequest without a pod.
	grace *int64
}

// An instance is one instance of a container.
type instance struct {
	pod      *pod
	status   runtime.ContainerStatus
	behavior *fake.Behavior // shared, not modified
	stubborn bool           // ignores SIGTERM
	stopping bool           // got SIGTERM and exits after StopDelay
	turn     int            // order of SIGTERM: 0, or higher for sidecars, the last one first
	timer    *time.Timer    // queued start or pending exit, or nil
	done     chan struct{}  // closed on exit
	ruled    map[int]int    // number of uses of Behavior.Commands
}

func (p *pod) createdAt() time.Time {
	var at time.Time
	if len(p.sandboxes) > 0 {
		at = p.sandboxes[0].CreatedAt
	}
	if len(p.containers) > 0 && (at.IsZero() || p.containers[0].status.CreatedAt.Before(at)) {
		at = p.containers[0].status.CreatedAt
	}
	return at
}

// readySandbox returns the newest sandbox if containers can run in it.
func (p *pod) readySandbox() *runtime.SandboxStatus {
	if n := len(p.sandboxes); n > 0 && p.sandboxes[n-1].State == runtime.SandboxReady {
		return p.sandboxes[n-1]
	}
	return nil
}

// running returns the newest running instance of the named container, or nil.
func (p *pod) running(name string) *instance {
	for _, v := range slices.Backward(p.containers) {
		if v.status.Name == name && v.status.State == runtime.ContainerRunning {
			return v
		}
	}
	return nil
}

// podLocked returns the pod, creating it if necessary. The caller must create a
// sandbox for a new pod before it releases the lock.
func (r *Runtime) podLocked(uid types.UID, name, namespace string) *pod {
	if p := r.pods[uid]; p != nil {
		return p
	}
	p := &pod{uid: uid, name: name, namespace: namespace, attempts: map[string]int32{}}
	if r.pods == nil {
		r.pods = map[types.UID]*pod{}
	}
	r.pods[uid] = p
	r.order = append(r.order, p)
	return p
}

func (r *Runtime) newSandboxLocked(p *pod, hostNetwork bool) *runtime.SandboxStatus {
	r.ids++
	sb := &runtime.SandboxStatus{
		ID:          fmt.Sprintf("sandbox-%d", r.ids),
		State:       runtime.SandboxReady,
		CreatedAt:   time.Now(),
		HostNetwork: hostNetwork,
	}
	if n := len(p.sandboxes); n > 0 {
		sb.Attempt = p.sandboxes[n-1].Attempt + 1
	}
	if !hostNetwork {
		sb.NetworkReported = true
		sb.IPs = []string{r.addressLocked()}
	}
	p.sandboxes = append(p.sandboxes, sb)
	r.changedLocked(p.uid)
	r.observeLocked(p, Change{Sandbox: sb})
	return sb
}

func (r *Runtime) addressLocked() string {
	if r.Address != nil {
		return r.Address()
	}
	r.addresses++
	return fmt.Sprintf("10.%d.%d.%d", r.addresses>>16&255, r.addresses>>8&255, r.addresses&255)
}

// runLocked creates an instance of c and starts it, or queues its start.
func (r *Runtime) runLocked(p *pod, sandboxID string, c *v1.Container, b *fake.Behavior) *instance {
	r.ids++
	now := time.Now()
	v := &instance{
		pod: p, behavior: b, stubborn: b.IgnoreTERM, done: make(chan struct{}),
		status: runtime.ContainerStatus{
			ID: instanceID(c.Name, r.ids), Name: c.Name, SandboxID: sandboxID,
			State:        runtime.ContainerCreated,
			RestartCount: p.attempts[c.Name],
			Hash:         plan.Hash(c),
			Image:        c.Image, ImageID: c.Image, ImageRef: c.Image,
			CreatedAt: now,
		},
	}
	p.attempts[c.Name]++
	p.containers = append(p.containers, v)
	if r.instances == nil {
		r.instances = map[string]*instance{}
	}
	r.instances[v.status.ID] = v
	if b.QueueDelay <= 0 {
		r.beginLocked(v, now)
		return v
	}
	v.timer = time.AfterFunc(b.QueueDelay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.beginLocked(v, time.Now())
	})
	r.changedLocked(p.uid)
	r.observeLocked(p, Change{Container: &v.status})
	return v
}

// beginLocked makes a created instance run. If its start was canceled, nothing
// changes.
func (r *Runtime) beginLocked(v *instance, now time.Time) {
	if v.status.State != runtime.ContainerCreated {
		return
	}
	v.status.State, v.status.StartedAt = runtime.ContainerRunning, now
	r.exitAsSpecifiedLocked(v, 0)
	r.changedLocked(v.pod.uid)
	r.observeLocked(v.pod, Change{Container: &v.status})
}

// instanceID returns the ID of an instance of a container.
func instanceID(container string, number int) string {
	return fmt.Sprintf("memory://%s-%d", container, number)
}

// exitAsSpecifiedLocked makes an instance that has run for age exit as its behavior specifies.
func (r *Runtime) exitAsSpecifiedLocked(v *instance, age time.Duration) {
	if e := v.behavior.Exit; e != nil && (e.Crashes == 0 || int(v.status.RestartCount) < e.Crashes) {
		r.exitLaterLocked(v, e.After-age, e.Code, e.Reason)
	}
}

// exitLaterLocked makes the instance exit after d.
func (r *Runtime) exitLaterLocked(v *instance, d time.Duration, code int32, reason string) {
	v.timer = time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.exitLocked(v, code, reason)
	})
}

// exitLocked makes the instance exit; if it has exited already, nothing changes.
// If reason is empty, it is Completed or Error, depending on the code.
//
// FinishedAt is the time at which the exit becomes visible, not the time for
// which it was planned: an inspection that began after FinishedAt must return it.
func (r *Runtime) exitLocked(v *instance, code int32, reason string) {
	if v.status.State == runtime.ContainerExited {
		return
	}
	if reason == "" {
		reason = "Error"
		if code == 0 {
			reason = "Completed"
		}
	}
	v.status.State = runtime.ContainerExited
	v.status.FinishedAt = time.Now()
	v.status.ExitCode = code
	v.status.Reason = reason
	if v.timer != nil {
		v.timer.Stop()
	}
	close(v.done)
	r.changedLocked(v.pod.uid)
	r.observeLocked(v.pod, Change{Container: &v.status})
}

// stopSandboxesLocked makes the sandboxes of the pod not ready.
func (r *Runtime) stopSandboxesLocked(p *pod) {
	for _, sb := range p.sandboxes {
		if sb.State == runtime.SandboxReady {
			sb.State = runtime.SandboxNotReady
			r.changedLocked(p.uid)
			r.observeLocked(p, Change{Sandbox: sb})
		}
	}
}

// removeLocked deletes the containers and sandboxes of p for which the functions
// return true, and p itself with the last of them. None of them may be running.
// The caller must sort r.order afterwards.
func (r *Runtime) removeLocked(p *pod, container func(*instance) bool, sandbox func(*runtime.SandboxStatus) bool) {
	before := len(p.containers) + len(p.sandboxes)
	p.containers = slices.DeleteFunc(p.containers, func(v *instance) bool {
		gone := container(v)
		if gone {
			delete(r.instances, v.status.ID)
			r.observeLocked(p, Change{Container: &v.status, Removed: true})
		}
		return gone
	})
	p.sandboxes = slices.DeleteFunc(p.sandboxes, func(sb *runtime.SandboxStatus) bool {
		gone := sandbox(sb)
		if gone {
			r.observeLocked(p, Change{Sandbox: sb, Removed: true})
		}
		return gone
	})
	after := len(p.containers) + len(p.sandboxes)
	if after == 0 {
		delete(r.pods, p.uid)
		r.order = slices.DeleteFunc(r.order, func(o *pod) bool { return o == p })
	}
	if after != before {
		r.changedLocked(p.uid)
	}
}
