package runtimetest

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Behavior specifies how a container runs. The zero value starts immediately,
// runs until it is stopped, and exits with 143 (128 + SIGTERM) as soon as it gets
// SIGTERM.
type Behavior struct {
	// Exit makes the container exit without being stopped. May be nil.
	Exit *Exit

	// Crashes limits Exit to this number of instances of the container in one
	// pod, as long as the runtime has the pod. Zero means no limit.
	Crashes int

	// Fail makes each start fail with this reason, without creating an
	// instance. Each SyncPod tries again.
	Fail *Failure

	// StartDelay is the duration of each start. SyncPod waits for it, as for an
	// image pull.
	StartDelay time.Duration

	// QueueDelay is how long a start is queued: SyncPod returns at once, the
	// container is in the state created for this time, and then runs. KillPod
	// cancels the start; the container exits with 137 and has no start time.
	QueueDelay time.Duration

	// StopDelay is the time from SIGTERM to the exit.
	StopDelay time.Duration

	// ReadyAfter is the time from the start until a readiness or startup probe
	// would pass. Runtime does not probe; see [Runtime.ReadyAfter].
	ReadyAfter time.Duration

	// Stubborn makes the container ignore SIGTERM; it exits with 137 (128 +
	// SIGKILL) at the end of the grace period.
	Stubborn bool

	// Exec runs a command in the container; it should return when ctx is done.
	// If nil, every command succeeds without output.
	Exec func(ctx context.Context, cmd []string) (runtime.ExecResult, error)
}

// An Exit specifies when and how a container exits.
type Exit struct {
	After time.Duration // since its start
	Code  int32

	// Reason is the reason in the container status, for example OOMKilled. If
	// empty, it is Completed for code 0, else Error.
	Reason string
}

// A Failure is the reason and the message of a failed start, with the reasons of
// the Kubernetes API (ErrImagePull, CreateContainerError).
type Failure struct {
	Reason  string
	Message string
}

// Behave sets the behavior of containers with this name, in any pod, or with
// this image, from their next start on. A behavior set for the name takes
// precedence over one set for the image, even if it is the zero Behavior.
func (r *Runtime) Behave(nameOrImage string, b Behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behaviors == nil {
		r.behaviors = map[string]Behavior{}
	}
	r.behaviors[nameOrImage] = b
}

// behavior returns the behavior of c if it is started now.
func (r *Runtime) behavior(pod *v1.Pod, c *v1.Container) Behavior {
	if r.Decide != nil {
		if b, ok := r.Decide(pod, c); ok {
			return b
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behaviorLocked(c)
}

func (r *Runtime) behaviorLocked(c *v1.Container) Behavior {
	if b, ok := r.behaviors[c.Name]; ok {
		return b
	}
	return r.behaviors[c.Image]
}

// ReadyAfter returns Behavior.ReadyAfter of an instance, for a simulated
// prober. It returns 0 if the instance does not exist.
func (r *Runtime) ReadyAfter(c runtime.ContainerStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.instances[c.ID]; v != nil {
		return v.behavior.ReadyAfter
	}
	return 0
}
