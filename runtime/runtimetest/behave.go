package runtimetest

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Behaviour is what a container does without being told. The zero value
// starts at once, runs until it is stopped, and exits with 143 (128 + TERM) as
// soon as it gets TERM.
type Behaviour struct {
	// Exit is how it ends by itself. Nil: it does not.
	Exit *Exit

	// Crashes, if above zero, is how many instances of the container (in one
	// pod, while the runtime has anything of that) end by Exit, those after them
	// do not. Zero: all do.
	Crashes int

	// Fail: it cannot be started, for this reason. No instance is made, and
	// each SyncPod tries again.
	Fail *Failure

	// StartDelay is how long each start takes. SyncPod waits for it, as it
	// would for an image.
	StartDelay time.Duration

	// StopDelay is how long it takes to exit after TERM.
	StopDelay time.Duration

	// ReadyAfter its start it would pass a readiness or startup probe. Nothing
	// here probes; see [Runtime.ReadyAfter].
	ReadyAfter time.Duration

	// Stubborn: it ignores TERM, and exits with 137 (128 + KILL) when its
	// grace period is over.
	Stubborn bool

	// Exec answers commands run in it; it should return when ctx ends. Nil:
	// every command succeeds and prints nothing.
	Exec func(ctx context.Context, cmd []string) (runtime.ExecResult, error)
}

// An Exit is how a container ends by itself.
type Exit struct {
	After time.Duration // since its start
	Code  int32

	// Reason as the runtime words it (OOMKilled). Empty: Completed for code
	// 0, Error for others.
	Reason string
}

// A Failure is why a container cannot be started, in the words of the
// Kubernetes API (ErrImagePull, CreateContainerError).
type Failure struct {
	Reason  string
	Message string
}

// Behave says how containers behave from their next start on: those of this
// name, in any pod, or else of this image. What a container's name says counts
// before what its image says, also where it says nothing (the zero Behaviour).
func (r *Runtime) Behave(nameOrImage string, b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behaviours == nil {
		r.behaviours = map[string]Behaviour{}
	}
	r.behaviours[nameOrImage] = b
}

// behaviour returns how c behaves if it is started now.
func (r *Runtime) behaviour(pod *v1.Pod, c *v1.Container) Behaviour {
	if r.Decide != nil {
		if b, ok := r.Decide(pod, c); ok {
			return b
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behaviourLocked(c)
}

func (r *Runtime) behaviourLocked(c *v1.Container) Behaviour {
	if b, ok := r.behaviours[c.Name]; ok {
		return b
	}
	return r.behaviours[c.Image]
}

// ReadyAfter returns how long after its start an instance is ready, as its
// Behaviour says: for who plays the prober. An instance that there is not (any
// more) is ready at once.
func (r *Runtime) ReadyAfter(c runtime.ContainerStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.instances[c.ID]; v != nil {
		return v.behaviour.ReadyAfter
	}
	return 0
}
