// Package podlog translates requests for container logs, as the Kubernetes API expresses them.
package podlog

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ContainerID returns the ID of the instance of a container whose log is requested: the
// current one, or the newest terminated one if previous is set or the container is not
// running. The error is the message that the kubelet reports if there is none (rule la-4).
func ContainerID(pod string, status *v1.PodStatus, container string, previous bool) (string, error) {
	all := slices.Concat(status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses)
	at := slices.IndexFunc(all, func(c v1.ContainerStatus) bool { return c.Name == container })
	if at < 0 {
		return "", fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	c := all[at]
	last := ""
	if t := c.LastTerminationState.Terminated; t != nil {
		last = t.ContainerID
	}
	if previous {
		if last == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
		}
		return last, nil
	}
	id := last
	switch {
	case c.State.Running != nil:
		id = c.ContainerID
	case c.State.Terminated != nil && c.State.Terminated.ContainerID != "":
		id = c.State.Terminated.ContainerID
	}
	if id != "" {
		return id, nil
	}
	waits := func(why string) error {
		return fmt.Errorf("container %q in pod %q is waiting to start%s", container, pod, why)
	}
	switch waiting := c.State.Waiting; {
	case c.State.Terminated != nil || c.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", container, pod)
	case waiting == nil:
		return "", waits(" - no logs yet")
	case waiting.Reason == "ErrImagePull":
		return "", waits(": image can't be pulled")
	case waiting.Reason == "ImagePullBackOff":
		return "", waits(": trying and failing to pull image")
	default:
		return "", waits(": " + waiting.Reason)
	}
}
