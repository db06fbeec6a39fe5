package allocation

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// An Actuator changes the resources of one running pod. Calls come one at a
// time. What it is handed is cpu and memory in full, and not its to change.
type Actuator interface {
	// AnnouncePod tells the runtime what the pod's cgroup is going to be
	// (UpdatePodSandboxResources). A runtime that cannot be told is no error
	// (rt-150); an error means that it refuses.
	AnnouncePod(ctx context.Context, all v1.ResourceRequirements) error

	// SetPod makes one value of the pod's cgroup what it is in all.
	SetPod(ctx context.Context, s Step) error

	// SetContainer gives a container its resources
	// (UpdateContainerResources).
	SetContainer(ctx context.Context, name string, all v1.ResourceRequirements) error
}

// Carry carries steps out in order, and stops at the first that fails or when
// ctx ends (al-20); what is left is found again by the next [Steps]. It returns
// how many steps were done, also beside an error: containers among them have
// their After, which is to be recorded as actuated (al-21). Whoever calls it
// asks for a new look at the pod, whatever the outcome (al-20).
//
// Each change of the pod's cgroup is announced first; a refusal ends it. If the
// change then fails, the old values are announced again (al-17), also when ctx
// has ended meanwhile.
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
		err = errors.Join(err, fmt.Errorf("announce the old values again: %w", back))
	}
	return err
}
