package fakecri

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// UpdateContainerResources changes the resources of a container in any state. Zero values are
// ignored.
func (r *Runtime) UpdateContainerResources(ctx context.Context, containerID string, resources *runtimeapi.ContainerResources) error {
	_, err := onContainer(ctx, r, r.ofContainer("UpdateContainerResources", containerID), func(c *container) (none struct{}, err error) {
		resources := proto.CloneOf(resources)
		c.resources = &runtimeapi.ContainerResources{
			Linux:   updated(c.resources.GetLinux(), resources.GetLinux()),
			Windows: updated(c.resources.GetWindows(), resources.GetWindows()),
		}
		return none, nil
	})
	return err
}

// UpdatePodSandboxResources records the resources of the pod, which are in its verbose status.
func (r *Runtime) UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return onSandbox(ctx, r, r.ofSandbox("UpdatePodSandboxResources", request.GetPodSandboxId()), func(s *sandbox) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		request := proto.CloneOf(request)
		s.resources, s.overhead = request.GetResources(), request.GetOverhead()
		return new(runtimeapi.UpdatePodSandboxResourcesResponse), nil
	})
}

// updated returns old with the values that change sets.
func updated[T proto.Message](old, change T) T {
	if !change.ProtoReflect().IsValid() {
		return old
	}
	if !old.ProtoReflect().IsValid() {
		return change
	}
	out := proto.CloneOf(old)
	m := out.ProtoReflect()
	change.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		m.Set(f, v)
		return true
	})
	return out
}

// ReopenContainerLog creates a new log file. The container must run.
func (r *Runtime) ReopenContainerLog(ctx context.Context, containerID string) error {
	_, err := onContainer(ctx, r, r.ofContainer("ReopenContainerLog", containerID), func(c *container) (none struct{}, err error) {
		if !c.running() {
			return none, refused("reopen log of container %s: it does not run", c.id)
		}
		return none, r.reopenLocked(c)
	})
	return err
}

// CheckpointContainer returns the error of containerd without criu, also for unknown containers.
func (r *Runtime) CheckpointContainer(ctx context.Context, options *runtimeapi.CheckpointContainerRequest) error {
	return act(ctx, r, r.ofContainer("CheckpointContainer", options.GetContainerId()), func(context.Context) error {
		return refused("checkpoint container %s: there is no criu", options.GetContainerId())
	})
}
