package fakecri

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A container is one that was created and not removed. Runtime.mu guards it.
type container struct {
	id       string
	reserved string // the name by which it is
	sandbox  *sandbox
	config   *runtimeapi.ContainerConfig
	behavior *fake.Behavior // shared, never changed
	image    resolved

	state                   runtimeapi.ContainerState
	created, started, ended int64 // zero if it was not
	code                    int32
	reason, message         string

	starting int            // number of the start in progress; zero if none
	termed   bool           // it received TERM
	hung     bool           // it ignores all signals except KILL
	ran      time.Duration  // of the process that was restored, until its checkpoint
	linger   *time.Duration // from TERM to its exit; nil means that of its Behavior
	end      *time.Timer    // of its own
	dying    *time.Timer    // of its StopDelay
	gone     chan struct{}  // closed when it has ended; nil if there is no waiter

	resources *runtimeapi.ContainerResources // as of the last update

	ruled   map[int]int // number of uses of its Behavior.Commands
	cpuUsed uint64      // core-nanoseconds up to the last stats call
	log     *logFile    // nil if it has none or does not run
	serving *serving    // nil in the same cases

	item *runtimeapi.Container // in lists; replaced, never changed
}

func (c *container) name() string { return c.config.GetMetadata().GetName() }

// asked returns the image in the container's config.
func (c *container) asked() string {
	if name := c.config.GetImage().GetUserSpecifiedImage(); name != "" {
		return name
	}
	return c.config.GetImage().GetImage()
}

func (c *container) running() bool { return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING }

// goneLocked returns a channel that is closed when the container has exited.
func (c *container) goneLocked() <-chan struct{} {
	if c.gone == nil {
		c.gone = make(chan struct{})
	}
	return c.gone
}

// CreateContainer creates a container in a sandbox. Its image must be present.
func (r *Runtime) CreateContainer(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	c := r.ofSandbox("CreateContainer", podSandboxID)
	c.Container = config.GetMetadata().GetName()
	return onSandbox(ctx, r, c, func(s *sandbox) (string, error) {
		c, err := r.createLocked(s, proto.CloneOf(config), sandboxConfig)
		if err != nil {
			return "", err
		}
		return c.id, nil
	})
}

// createLocked creates a container, which keeps the config.
func (r *Runtime) createLocked(s *sandbox, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (*container, error) {
	if !s.ready {
		return nil, notRunning("create container", s)
	}
	meta := config.GetMetadata()
	if meta == nil {
		return nil, refused("create container: its config has no metadata")
	}
	if sandboxConfig.GetMetadata() == nil {
		return nil, refused("create container %s: the config of its sandbox has no metadata", meta.GetName())
	}
	name := containerName(meta, sandboxConfig.GetMetadata())
	if by, taken := r.names[name]; taken {
		return nil, reservedFor("container", name, by)
	}
	users := config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	if !proto.Equal(users, sandboxConfig.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()) {
		return nil, refused("create container %s: its user namespace is not that of its sandbox", meta.GetName())
	}
	image, err := r.resolveLocked(config.GetImage())
	if err != nil {
		return nil, err
	}
	behavior, err := r.behaviorOf(s, config, image)
	if err != nil {
		return nil, err
	}
	c := &container{
		id: r.newIDLocked(), reserved: name, sandbox: s, config: config, image: image,
		behavior: behavior, created: now(),
		resources: &runtimeapi.ContainerResources{Linux: config.GetLinux().GetResources(), Windows: config.GetWindows().GetResources()},
	}
	r.names[name] = c.id
	if config.GetLabels()[labelPodUID] != s.uid() {
		r.mislabelled++
	}
	s.containers = append(s.containers, c)
	r.containers.add(c.id, c)
	r.showLocked(c)
	r.containerChangedLocked(c, Absent, Created)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, c.id)
	return c, nil
}

// containerName returns the name that containerd reserves for a container.
func containerName(m *runtimeapi.ContainerMetadata, s *runtimeapi.PodSandboxMetadata) string {
	return strings.Join([]string{
		m.GetName(), s.GetName(), s.GetNamespace(), s.GetUid(), strconv.FormatUint(uint64(m.GetAttempt()), 10),
	}, "_")
}

func (r *Runtime) containerChangedLocked(c *container, from, to State) {
	ch := Change{
		Pod: c.sandbox.uid(), Container: c.name(), ID: c.id, Attempt: c.config.GetMetadata().GetAttempt(),
		Sandbox: c.sandbox.id, Image: c.asked(), From: from, To: to,
	}
	if to == Exited {
		ch.ExitCode, ch.Reason = c.code, c.reason
	}
	r.changedLocked(ch)
}

func stateOf(s runtimeapi.ContainerState) State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return Created
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return Running
	}
	return Exited
}

// RemoveContainer removes the container, after killing it if it runs. An unknown ID is
// not an error; a container that is being started cannot be removed.
func (r *Runtime) RemoveContainer(ctx context.Context, containerID string) error {
	return actLocked(ctx, r, r.ofContainer("RemoveContainer", containerID), func() error {
		c, err := r.containers.find(containerID)
		if err != nil {
			return idempotent("container", containerID, err)
		}
		r.killLocked(c)
		return r.removeLocked(c)
	})
}

// removeLocked removes a container that does not run.
func (r *Runtime) removeLocked(c *container) error {
	if c.starting != 0 {
		return refused("remove container %s: it is being started", c.id)
	}
	s := c.sandbox
	s.containers = slices.DeleteFunc(s.containers, func(o *container) bool { return o == c })
	r.containers.remove(c.id)
	delete(r.names, c.reserved)
	if c.config.GetLabels()[labelPodUID] != s.uid() {
		r.mislabelled--
	}
	note(&r.past, &r.past.containers, c.id, c.item)
	r.containerChangedLocked(c, stateOf(c.state), Absent)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, c.id)
	return nil
}

// showLocked updates the container in lists.
func (r *Runtime) showLocked(c *container) {
	was := c.item
	c.item = &runtimeapi.Container{
		Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.Metadata, Image: c.config.Image, ImageRef: c.image.ref,
		ImageId: c.image.id, State: c.state, CreatedAt: c.created, Labels: c.config.Labels, Annotations: c.config.Annotations,
	}
	note(&r.past, &r.past.containers, c.id, was)
}
