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
	expected  bool // an init container that succeeded runs again in a new sandbox
}

func (e *transitionError) Error() string {
	return fmt.Sprintf("container %s exited with code %d and must not be restarted", e.container, e.code)
}

// checkTransition returns an error if a terminated container that may not restart has another
// state in new (rule st-50). The API server rejects such a status. It knows only the exit code,
// so an init container that succeeded may not be shown while it runs again in a new sandbox.
func checkTransition(pod *v1.Pod, old, new *v1.PodStatus) error {
	if podspec.MayRestartAll(pod) {
		return nil // any container may restart
	}
	check := func(c *v1.Container, was, is []v1.ContainerStatus) error {
		before, after := find(was, c.Name), find(is, c.Name)
		if before == nil || after == nil || before.State.Terminated == nil || after.State.Terminated != nil {
			return nil
		}
		end := before.State.Terminated
		if podspec.RestartsAll(c, end.ExitCode) || podspec.ActionAfterCode(pod, c, end.ExitCode) != podspec.NoRestart {
			return nil
		}
		return &transitionError{c.Name, end.ExitCode, podspec.RunsToCompletion(pod, c.Name) && podspec.Succeeded(pod, c, podspec.TerminatedExit(end))}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if err := check(c, old.InitContainerStatuses, new.InitContainerStatuses); err != nil {
			return err
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if err := check(c, old.ContainerStatuses, new.ContainerStatuses); err != nil {
			return err
		}
	}
	return nil
}

// computeLegal is Compute, except that a terminated container that may not restart stays
// terminated whatever is observed of it; illegal is an error for the first such container, except
// an init container that runs again in a new sandbox. The rest of the status is updated: a runtime that
// lost its state may run such a container again, and the other containers must stay visible meanwhile.
func computeLegal(f Facts) (s v1.PodStatus, illegal error) {
	old := f.previous()
	for {
		s = Compute(f)
		err := checkTransition(f.Pod, old, &s)
		if err == nil {
			return s, illegal
		}
		bad, ok := errors.AsType[*transitionError](err)
		if illegal == nil && !(ok && bad.expected) {
			illegal = err
		}
		if !ok || f.Observed == nil {
			return *old, illegal
		}
		// The reported status of a container that is not observed is kept.
		left := *f.Observed
		left.Containers = slices.DeleteFunc(slices.Clone(left.Containers), func(c runtime.ContainerStatus) bool { return c.Name == bad.container })
		if len(left.Containers) == len(f.Observed.Containers) {
			return *old, illegal
		}
		f.Observed = &left
	}
}
