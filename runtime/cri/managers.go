package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Managers assigns resources of the node, such as CPUs and devices, to containers. SyncPod
// calls its methods, which may block until ctx is done. Calls for one pod do not
// overlap.
type Managers interface {
	// PreparePod prepares the claimed resources of the pod before its sandbox is
	// created. An error is reported as CreatePodSandboxError with the event
	// FailedPrepareDynamicResources, and the sync is retried.
	PreparePod(ctx context.Context, pod *v1.Pod) error

	// PreCreate may change the configuration of the container: set CPUs, add devices,
	// mounts, environment variables, annotations. An error is reported as
	// PreCreateHookError.
	PreCreate(ctx context.Context, pod *v1.Pod, c *v1.Container, config *runtimeapi.ContainerConfig) error

	// PreStart is called after the container was created and before it is started. An
	// error is reported as PreStartHookError.
	PreStart(ctx context.Context, pod *v1.Pod, c *v1.Container, containerID string) error

	// PostStop is called before a container is removed, also if its pod was removed.
	// It must be idempotent.
	PostStop(ctx context.Context, containerID string) error

	// ExclusiveCPUs returns the names of the pod's containers that have exclusive CPUs.
	// These containers and the pod have no CPU quota, as in Kubernetes since 1.33
	// (DisableCPUQuotaWithExclusiveCPUs). It must not block.
	ExclusiveCPUs(pod *v1.Pod) []string
}

// exclusiveCPUs returns the names of the pod's containers with exclusive CPUs.
func (r *Runtime) exclusiveCPUs(pod *v1.Pod) []string {
	if r.cfg.Providers.Managers == nil {
		return nil
	}
	return r.cfg.Providers.Managers.ExclusiveCPUs(pod)
}
