package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// UpdateResources implements [runtime.ResourceUpdater].
func (r *Runtime) UpdateResources(ctx context.Context, containerID string, resources v1.ResourceRequirements) error {
	return r.updateContainer(ctx, runtimeID(containerID), podconfig.LinuxResources(r.cfg.Node.facts(r.cfg.Dirs.Root), resources))
}

// updateContainer changes the resources of a running container. id has no prefix.
func (r *Runtime) updateContainer(ctx context.Context, id string, resources *runtimeapi.LinuxContainerResources) error {
	err := r.cfg.Runtime.UpdateContainerResources(r.quiet(ctx), id, &runtimeapi.ContainerResources{Linux: resources})
	if err != nil {
		return fmt.Errorf("cri: update the resources of container %s: %w", id, err)
	}
	return nil
}

// updateSandbox reports the total resources of the pod's containers and the overhead to
// runtimes with a virtual machine per pod. It is not an error if the runtime does not
// support it.
func (r *Runtime) updateSandbox(ctx context.Context, id string, overhead, resources *runtimeapi.LinuxContainerResources) error {
	_, err := r.cfg.Runtime.UpdatePodSandboxResources(r.quiet(ctx), &runtimeapi.UpdatePodSandboxResourcesRequest{
		PodSandboxId: id, Overhead: overhead, Resources: resources,
	})
	if err == nil || errors.Is(err, runtime.ErrUnsupported) ||
		hasCode(err, codes.Unknown) && strings.Contains(errorMessage(err), "not implemented") {
		return nil
	}
	return fmt.Errorf("cri: update the resources of sandbox %s: %w", id, err)
}
