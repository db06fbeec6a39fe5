package fakecri

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Put adds a sandbox and its containers as in their statuses, for example those of another
// agent or a dump of a real node. If the sandbox exists, it is not changed and the containers
// are added to it.
//
// No events are published. A container that runs does so until it is stopped or a test makes
// it exit. Images need not exist, names may be in use, and metadata, labels and sandboxes may
// be inconsistent. It returns an error and adds nothing if an ID is empty or in use.
func (r *Runtime) Put(sandbox *runtimeapi.PodSandboxStatus, containers ...*runtimeapi.ContainerStatus) error {
	sandbox = proto.CloneOf(sandbox)
	r.mu.Lock()
	defer r.unlock()
	if sandbox.GetId() == "" {
		return errors.New("fakecri: put sandbox: ID is empty")
	}
	s := r.putSandbox(sandbox, containers)
	put := map[string]bool{}
	var made []*container
	for _, status := range containers {
		id := status.GetId()
		if _, known := r.containers.byID[id]; known || put[id] || id == "" {
			return fmt.Errorf("fakecri: put sandbox %s: container ID %q is taken or empty", sandbox.Id, id)
		}
		put[id] = true
		c, err := r.putContainerLocked(s, proto.CloneOf(status))
		if err != nil {
			return fmt.Errorf("fakecri: put container %s: %w", id, err)
		}
		made = append(made, c)
	}
	if _, known := r.sandboxes.byID[s.id]; !known {
		s.name = r.reservePutLocked(s.name, s.id)
		r.enlistLocked(s)
	}
	for _, c := range made {
		r.addPutContainerLocked(c)
	}
	return nil
}

// putSandbox returns the sandbox with this ID, creating it if necessary.
func (r *Runtime) putSandbox(status *runtimeapi.PodSandboxStatus, containers []*runtimeapi.ContainerStatus) *sandbox {
	if l, known := r.sandboxes.byID[status.Id]; known {
		return l.value
	}
	s := &sandbox{
		id: status.Id, handler: status.GetRuntimeHandler(), created: status.GetCreatedAt(),
		ready: status.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		config: &runtimeapi.PodSandboxConfig{
			Metadata: status.GetMetadata(), Labels: status.GetLabels(), Annotations: status.GetAnnotations(),
			Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions: status.GetLinux().GetNamespaces().GetOptions(),
			}},
		},
	}
	if s.ready {
		s.ip = status.GetNetwork().GetIp()
	}
	if m := s.config.Metadata; m != nil {
		s.name = sandboxName(m)
	}
	for _, c := range containers { // only they have the directory
		if path := c.GetLogPath(); path != "" {
			s.config.LogDirectory = filepath.Dir(filepath.Dir(path))
		}
	}
	return s
}

// reservePutLocked reserves a name and returns it, or "" if none is free.
func (r *Runtime) reservePutLocked(name, id string) string {
	if _, taken := r.names[name]; taken || name == "" {
		return ""
	}
	r.names[name] = id
	return name
}

// putContainerLocked returns the container for a status.
func (r *Runtime) putContainerLocked(s *sandbox, status *runtimeapi.ContainerStatus) (*container, error) {
	c := &container{
		id: status.Id, sandbox: s, state: status.GetState(),
		created: status.GetCreatedAt(), started: status.GetStartedAt(), ended: status.GetFinishedAt(),
		code: status.GetExitCode(), reason: status.GetReason(), message: status.GetMessage(),
		image:     resolved{spec: status.GetImage(), ref: status.GetImageRef(), id: status.GetImageId()},
		resources: status.GetResources(),
		config: &runtimeapi.ContainerConfig{
			Metadata: status.GetMetadata(), Image: status.GetImage(), Labels: status.GetLabels(), Annotations: status.GetAnnotations(),
			Mounts: status.GetMounts(), StopSignal: status.GetStopSignal(),
			LogPath: strings.TrimPrefix(strings.TrimPrefix(status.GetLogPath(), s.config.LogDirectory), "/"),
			Linux:   &runtimeapi.LinuxContainerConfig{Resources: status.GetResources().GetLinux()},
		},
	}
	if c.resources == nil {
		c.resources = new(runtimeapi.ContainerResources)
	}
	if m := c.config.Metadata; m != nil && s.config.GetMetadata() != nil {
		c.reserved = containerName(m, s.config.Metadata)
	}
	var err error
	c.behavior, err = r.behaviorOf(s, c.config, c.image)
	return c, err
}

func (r *Runtime) addPutContainerLocked(c *container) {
	c.reserved = r.reservePutLocked(c.reserved, c.id)
	if c.config.GetLabels()[labelPodUID] != c.sandbox.uid() {
		r.mislabelled++
	}
	c.sandbox.containers = append(c.sandbox.containers, c)
	r.containers.add(c.id, c)
	r.showLocked(c)
	if c.running() {
		r.beginLocked(c)
	}
}
