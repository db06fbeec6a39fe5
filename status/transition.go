package status

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
)

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
		return fmt.Errorf("container %s exited with code %d and is not to be restarted", c.Name, before.State.Terminated.ExitCode)
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
