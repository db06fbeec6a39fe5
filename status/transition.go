package status

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A transitionError names a container that must not restart.
type transitionError struct {
	container string
	code      int32
}

func (e *transitionError) Error() string {
	return fmt.Sprintf("container %s exited with code %d and is not to be restarted", e.container, e.code)
}

// checkTransition returns an error if a terminated container that may not restart has another
// state in new (rule st-50).
func checkTransition(pod *v1.Pod, old, new *v1.PodStatus) error {
	if podspec.MayRestartAll(pod) {
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
			return restartable(pod, c, true, end) || end.ExitCode == 0 && podspec.RestartPolicy(pod, c) != v1.RestartPolicyNever
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

// computeLegal is Compute, except that a terminated container that may not restart stays
// terminated whatever is observed of it; rejected is an error for the first such container. The
// rest of the status is updated: a runtime that lost its state may run such a container again,
// and the other containers must stay visible meanwhile.
func computeLegal(f Facts) (s v1.PodStatus, refused error) {
	old := f.previous()
	for {
		s = Compute(f)
		err := checkTransition(f.Pod, old, &s)
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
