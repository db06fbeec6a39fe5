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
	return act(ctx, r, r.ofContainer("UpdateContainerResources", containerID), func(ctx context.Context) error {
		resources := proto.CloneOf(resources)
		if err := r.begin(ctx); err != nil {
			return err
		}
		defer r.unlock()
		c, err := r.containers.find(containerID)
		if err != nil {
			return unknownID("container", containerID, err)
		}
		c.resources = &runtimeapi.ContainerResources{
			Linux:   updated(c.resources.GetLinux(), resources.GetLinux()),
			Windows: updated(c.resources.GetWindows(), resources.GetWindows()),
		}
		return nil
	})
}

// UpdatePodSandboxResources records the resources of the pod, which are in its verbose status.
func (r *Runtime) UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return call(ctx, r, r.ofSandbox("UpdatePodSandboxResources", request.GetPodSandboxId()), func(ctx context.Context) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		request := proto.CloneOf(request)
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.unlock()
		s, err := r.sandboxes.find(request.GetPodSandboxId())
		if err != nil {
			return nil, unknownID("sandbox", request.GetPodSandboxId(), err)
		}
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
	return act(ctx, r, r.ofContainer("ReopenContainerLog", containerID), func(ctx context.Context) error {
		if err := r.begin(ctx); err != nil {
			return err
		}
		defer r.unlock()
		c, err := r.containers.find(containerID)
		if err != nil {
			return unknownID("container", containerID, err)
		}
		if !c.running() {
			return refused("reopen log of container %s: it does not run", c.id)
		}
		return r.reopenLocked(c)
	})
}

// CheckpointContainer returns the error of containerd without criu, also for unknown containers.
func (r *Runtime) CheckpointContainer(ctx context.Context, options *runtimeapi.CheckpointContainerRequest) error {
	return act(ctx, r, r.ofContainer("CheckpointContainer", options.GetContainerId()), func(context.Context) error {
		return refused("checkpoint container %s: there is no criu", options.GetContainerId())
	})
}
