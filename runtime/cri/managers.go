package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Managers hand out what the node has few of, such as CPUs and devices, to the
// containers that a [Runtime] makes. Its methods are called by SyncPod, which
// they may keep waiting until its context ends; calls for one pod don't overlap.
type Managers interface {
	// PreparePod gets ready what the pod has claimed, before its sandbox is
	// made. An error is a CreatePodSandboxError with the event
	// FailedPrepareDynamicResources, and the pod is tried again.
	PreparePod(ctx context.Context, pod *v1.Pod) error

	// PreCreate may change what the container is made from: pin it to CPUs,
	// add devices, mounts, variables, annotations. An error is a
	// PreCreateHookError.
	PreCreate(ctx context.Context, pod *v1.Pod, c *v1.Container, config *runtimeapi.ContainerConfig) error

	// PreStart is told of a container that was created and is about to be
	// started. An error is a PreStartHookError.
	PreStart(ctx context.Context, pod *v1.Pod, c *v1.Container, containerID string) error

	// PostStop is told that a container is about to be removed, also of one
	// whose pod is gone. It must take being told again.
	PostStop(ctx context.Context, containerID string) error
}

// ExclusiveCPUs is an optional interface of Managers that give containers CPUs
// which no other container may use. Without it all containers have CPU quotas.
type ExclusiveCPUs interface {
	// ExclusiveCPUs returns the names of the pod's containers that have such CPUs.
	// These containers and the pod have no CPU quota, as in Kubernetes since 1.33
	// (DisableCPUQuotaWithExclusiveCPUs). It must not block.
	ExclusiveCPUs(pod *v1.Pod) []string
}

// exclusiveCPUs returns the names of the pod's containers that have CPUs of their
// own.
func (r *Runtime) exclusiveCPUs(pod *v1.Pod) []string {
	if m, ok := r.cfg.Providers.Managers.(ExclusiveCPUs); ok {
		return m.ExclusiveCPUs(pod)
	}
	return nil
}
