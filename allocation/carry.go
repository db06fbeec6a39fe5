package allocation

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// An Actuator changes the resources of a running pod. Its methods are not called concurrently.
// Arguments contain all of the cpu and memory values and must not be modified.
type Actuator interface {
	// AnnouncePod sends the future resources of the pod's cgroup to the runtime
	// (UpdatePodSandboxResources). It must return nil if the runtime does not implement
	// that (rule rt-150); an error means that the runtime rejects the resources.
	AnnouncePod(ctx context.Context, all v1.ResourceRequirements) error

	// SetPod applies a step to the pod's cgroup.
	SetPod(ctx context.Context, s Step) error

	// SetContainer sets the resources of a container (UpdateContainerResources).
	SetContainer(ctx context.Context, name string, all v1.ResourceRequirements) error
}

// Carry applies steps in order, until one fails or ctx is done; the next [Steps] returns the
// remaining ones. It returns the number of applied steps, also with an error; the containers of
// these steps have the resources After. The caller must inspect the pod again, whatever the
// result.
//
// Each change of the pod's cgroup is announced first; a rejection ends it. If the change then
// fails, the old values are announced again, even if ctx is done.
func Carry(ctx context.Context, steps []Step, a Actuator) (done int, err error) {
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := carry(ctx, s, a); err != nil {
			return i, fmt.Errorf("allocation: %s: %w", s, err)
		}
	}
	return len(steps), nil
}

func carry(ctx context.Context, s Step, a Actuator) error {
	if s.Kind == ContainerStep {
		return a.SetContainer(ctx, s.Container, s.After)
	}
	if err := a.AnnouncePod(ctx, s.After); err != nil {
		return err
	}
	err := a.SetPod(ctx, s)
	if err == nil {
		return nil
	}
	if back := a.AnnouncePod(context.WithoutCancel(ctx), s.Before); back != nil {
		err = errors.Join(err, fmt.Errorf("restore announced resources: %w", back))
	}
	return err
}
