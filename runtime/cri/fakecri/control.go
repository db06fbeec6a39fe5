package fakecri

import (
	"fmt"
	"iter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit makes the running container with this name in the pod exit with the code. It
// returns an error if none runs.
func (r *Runtime) Exit(podUID, container string, code int32) error {
	return r.endRunning(podUID, container, code, reasonOf(code))
}

// Kill makes it exit with 137, as a SIGKILL inside the machine does.
func (r *Runtime) Kill(podUID, container string) error {
	return r.endRunning(podUID, container, codeKill, reasonOf(codeKill))
}

// OOM makes it exit with 137 and reason OOMKilled.
func (r *Runtime) OOM(podUID, container string) error {
	return r.endRunning(podUID, container, codeKill, "OOMKilled")
}

// Hang makes the running container with this name in the pod ignore SIGTERM, including
// one that it got before, and cancels its pending exit. It returns an error if none
// runs.
func (r *Runtime) Hang(podUID, container string) error {
	r.mu.Lock()
	defer r.unlock()
	c := r.runningLocked(podUID, container)
	if c == nil {
		return noneRuns(podUID, container)
	}
	c.hung = true
	c.stayLocked()
	return nil
}

// Linger sets the time from a later SIGTERM to the exit of the running container with
// this name in the pod, in place of its Behavior, as for a server that drains its
// connections. It returns an error if none runs.
func (r *Runtime) Linger(podUID, container string, stopDelay time.Duration) error {
	r.mu.Lock()
	defer r.unlock()
	c := r.runningLocked(podUID, container)
	if c == nil {
		return noneRuns(podUID, container)
	}
	c.linger = &stopDelay
	return nil
}

func noneRuns(uid, name string) error {
	return fmt.Errorf("fakecri: no container %s of pod %s runs", name, uid)
}

func (r *Runtime) endRunning(uid, name string, code int32, reason string) error {
	r.mu.Lock()
	c := r.runningLocked(uid, name)
	r.mu.Unlock()
	if c == nil || !r.exit(c, code, reason, false) {
		return noneRuns(uid, name)
	}
	return nil
}

// runningLocked returns the newest running container with this name, or nil.
func (r *Runtime) runningLocked(uid, name string) *container {
	var found *container
	for c := range r.containersOfPodLocked(uid) {
		if c.name() == name && c.running() {
			found = c
		}
	}
	return found
}

// KillSandbox makes the pod's newest ready sandbox not ready. Its containers continue to
// run. It returns an error if none is ready.
func (r *Runtime) KillSandbox(podUID string) error {
	r.mu.Lock()
	defer r.unlock()
	var last *sandbox
	for s := range r.sandboxesOfPodLocked(podUID) {
		if s.ready && s.uid() == podUID {
			last = s
		}
	}
	if last == nil {
		return fmt.Errorf("fakecri: no sandbox of pod %s is ready", podUID)
	}
	r.fellLocked(last)
	return nil
}

// A Container is the actual state of a container, regardless of faults.
type Container struct {
	Pod, Name, ID, SandboxID string
	Attempt                  uint32
	State                    State
	ExitCode                 int32
	Reason                   string

	Created, Started, Ended time.Time // zero if it has not happened

	// Config is the configuration. It must not be modified.
	Config *runtimeapi.ContainerConfig
}

// Containers returns the containers of a pod, oldest first, or of all pods if podUID is
// empty. It works also while the daemon is down.
func (r *Runtime) Containers(podUID string) []Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Container
	for c := range r.containersOfPodLocked(podUID) {
		list = append(list, Container{
			Pod: c.sandbox.uid(), Name: c.name(), ID: c.id, SandboxID: c.sandbox.id,
			Attempt: c.config.GetMetadata().GetAttempt(), State: stateOf(c.state), ExitCode: c.code, Reason: c.reason,
			Created: timeOf(c.created), Started: timeOf(c.started), Ended: timeOf(c.ended),
			Config: c.config,
		})
	}
	return list
}

// A Sandbox is the actual state of a sandbox.
type Sandbox struct {
	Pod, Name, Namespace, ID string
	Attempt                  uint32
	State                    State
	IP                       string // empty on the host network and when it is not ready
	Created                  time.Time
	Config                   *runtimeapi.PodSandboxConfig // must not be modified
}

// Sandboxes returns the sandboxes of a pod, like Containers.
func (r *Runtime) Sandboxes(podUID string) []Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Sandbox
	for s := range r.sandboxesOfPodLocked(podUID) {
		m, state := s.config.GetMetadata(), NotReady
		if s.ready {
			state = Ready
		}
		list = append(list, Sandbox{
			Pod: m.GetUid(), Name: m.GetName(), Namespace: m.GetNamespace(), ID: s.id, Attempt: m.GetAttempt(),
			State: state, IP: s.ip, Created: timeOf(s.created), Config: s.config,
		})
	}
	return list
}

func (r *Runtime) sandboxesOfPodLocked(uid string) iter.Seq[*sandbox] {
	if uid == "" {
		return r.sandboxes.all()
	}
	return func(yield func(*sandbox) bool) {
		if p := r.pods[uid]; p != nil {
			for _, s := range p.sandboxes {
				if !yield(s) {
					return
				}
			}
		}
	}
}

func (r *Runtime) containersOfPodLocked(uid string) iter.Seq[*container] {
	if uid == "" {
		return r.containers.all()
	}
	return func(yield func(*container) bool) {
		for s := range r.sandboxesOfPodLocked(uid) {
			for _, c := range s.containers {
				if !yield(c) {
					return
				}
			}
		}
	}
}

func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
