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
	// UpdatePodSandboxResources sends the future resources of the pod's cgroup to the
	// runtime, before each change of the cgroup. It must return nil if the runtime does not implement
	// that (rule rt-150); an error means that the runtime rejects the resources.
	UpdatePodSandboxResources(ctx context.Context, all v1.ResourceRequirements) error

	// SetPodCgroup applies a step to the pod's cgroup.
	SetPodCgroup(ctx context.Context, s ResizeStep) error

	// UpdateContainerResources sets the resources of a running container.
	UpdateContainerResources(ctx context.Context, name string, all v1.ResourceRequirements) error
}

// Actuate applies steps in order, until one fails or ctx is done; the next [PlanResize] returns
// the remaining ones. It returns the number of applied steps, also with an error; the containers of
// these steps have the resources After. The caller must inspect the pod again, whatever the
// result.
//
// Each change of the pod's cgroup is sent to the runtime first; if the runtime rejects it, the cgroup
// is not changed. If the change of the cgroup fails, the old values are sent to the runtime, even if
// ctx is done (rule al-17).
func Actuate(ctx context.Context, steps []ResizeStep, a Actuator) (done int, err error) {
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := actuate(ctx, s, a); err != nil {
			return i, fmt.Errorf("allocation: %s: %w", s, err)
		}
	}
	return len(steps), nil
}

func actuate(ctx context.Context, s ResizeStep, a Actuator) error {
	if s.Container != "" {
		return a.UpdateContainerResources(ctx, s.Container, s.After)
	}
	if err := a.UpdatePodSandboxResources(ctx, s.After); err != nil {
		return err
	}
	err := a.SetPodCgroup(ctx, s)
	if err == nil {
		return nil
	}
	if back := a.UpdatePodSandboxResources(context.WithoutCancel(ctx), s.Before); back != nil {
		err = errors.Join(err, fmt.Errorf("restore sandbox resources: %w", back))
	}
	return err
}
