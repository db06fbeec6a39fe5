package status

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
)

// A transitionError names the container that CheckTransition is about.
type transitionError struct {
	container string
	code      int32
}

func (e *transitionError) Error() string {
	return fmt.Sprintf("container %s exited with code %d and is not to be restarted", e.container, e.code)
}

// CheckTransition returns an error if a container that had exited for good is
// said to be anything but exited (st-50). Whoever is about to say so has mixed
// up two pods or two observations.
func CheckTransition(pod *v1.Pod, old, new *v1.PodStatus) error {
	if restart.MayRestartAll(pod) {
		return nil // any container may come back
	}
	check := func(c *v1.Container, was, is []v1.ContainerStatus, again func(*v1.ContainerStateTerminated) bool) error {
		before, after := find(was, c.Name), find(is, c.Name)
		if before == nil || after == nil || before.State.Terminated == nil || after.State.Terminated != nil || again(before.State.Terminated) {
			return nil
		}
		return &transitionError{c.Name, before.State.Terminated.ExitCode}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		err := check(c, old.InitContainerStatuses, new.InitContainerStatuses, func(end *v1.ContainerStateTerminated) bool {
			// One that succeeded runs again in a new sandbox, unless the pod
			// never restarts anything.
			return restartable(pod, c, true, end) || end.ExitCode == 0 && restart.Policy(pod, c) != v1.RestartPolicyNever
		})
		if err != nil {
			return err
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		err := check(c, old.ContainerStatuses, new.ContainerStatuses, func(end *v1.ContainerStateTerminated) bool {
			return restartable(pod, c, false, end)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// computeLegal is Compute, but that the end of a container which had exited for
// good stands whatever is observed of it (st-50); refused tells of the first such
// container, nil if there is none. Of the rest of the pod all is said: a runtime
// whose memory was lost may run such a container again, and a status that stood
// still for as long as it does would hide how the others are, and that the pod is
// over when they are.
func computeLegal(f Facts) (s v1.PodStatus, refused error) {
	old := f.previous()
	for {
		s = Compute(f)
		err := CheckTransition(f.Pod, old, &s)
		if err == nil {
			return s, refused
		}
		if refused == nil {
			refused = err
		}
		bad, ok := errors.AsType[*transitionError](err)
		if !ok || f.Observed == nil {
			return *old, refused
		}
		// Of what the runtime does not show, what was said stands (st-7).
		left := *f.Observed
		left.Containers = slices.DeleteFunc(slices.Clone(left.Containers), func(c runtime.ContainerStatus) bool { return c.Name == bad.container })
		if len(left.Containers) == len(f.Observed.Containers) {
			return *old, refused
		}
		f.Observed = &left
	}
}
