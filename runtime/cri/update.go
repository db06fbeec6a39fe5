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
	return r.updateContainer(ctx, bare(containerID), podconfig.LinuxResources(r.cfg.Node.facts(r.cfg.Dirs.Root), resources))
}

// updateContainer gives a running container other resources. id is the runtime's
// own.
func (r *Runtime) updateContainer(ctx context.Context, id string, resources *runtimeapi.LinuxContainerResources) error {
	err := r.cfg.Runtime.UpdateContainerResources(r.quiet(ctx), id, &runtimeapi.ContainerResources{Linux: resources})
	if err != nil {
		return fmt.Errorf("cri: update the resources of container %s: %w", id, err)
	}
	return nil
}

// updateSandbox tells the runtime what the pod's containers may use in all, and
// what the sandbox takes itself. It is a courtesy to runtimes that run a machine
// per pod; one that has no use for it does not fail (rt-150).
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
