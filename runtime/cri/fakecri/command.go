package fakecri

import (
	"fmt"
	"iter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit ends the running container of this name in the pod by itself, with a
// code. It is an error if there is none that runs.
func (r *Runtime) Exit(podUID, container string, code int32) error {
	return r.endRunning(podUID, container, code, reasonOf(code))
}

// Kill ends it as KILL from inside the machine does, with 137.
func (r *Runtime) Kill(podUID, container string) error {
	return r.endRunning(podUID, container, codeKill, reasonOf(codeKill))
}

// OOM ends it as the kernel does when its memory is over: 137, OOMKilled.
func (r *Runtime) OOM(podUID, container string) error {
	return r.endRunning(podUID, container, codeKill, "OOMKilled")
}

// Hang lets the running container of this name in the pod do nothing more by
// itself: it does not end, and ignores TERM, also if it got that already. It is
// an error if there is none that runs.
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

// Linger lets the running container of this name in the pod take this long to
// exit after a TERM that is to come, whatever its behaviour says of that: it has
// connections that it serves to their end. It is an error if there is none that
// runs.
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

// runningLocked returns the newest container of this name that runs, nil if none
// does.
func (r *Runtime) runningLocked(uid, name string) *container {
	var found *container
	for c := range r.containersOfPodLocked(uid) {
		if c.name() == name && c.running() {
			found = c
		}
	}
	return found
}

// KillSandbox ends what holds the pod's newest sandbox together, so that it is
// not ready. Its containers go on. It is an error if none is ready.
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

// A Container is what is true of one, whatever faults make callers of the CRI
// see.
type Container struct {
	Pod, Name, ID, SandboxID string
	Attempt                  uint32
	State                    State
	ExitCode                 int32
	Reason                   string

	Created, Started, Ended time.Time // zero: it was not

	// Config is what it was created with, to be read only.
	Config *runtimeapi.ContainerConfig
}

// Containers returns those of a pod, oldest first, or of all pods where podUID
// is empty. It works while the daemon is down, too.
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

// A Sandbox is as a Container.
type Sandbox struct {
	Pod, Name, Namespace, ID string
	Attempt                  uint32
	State                    State
	IP                       string // empty: the host's, or there is none any more
	Created                  time.Time
	Config                   *runtimeapi.PodSandboxConfig // as of a Container
}

// Sandboxes is as Containers.
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
