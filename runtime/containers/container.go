package containers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// CreateContainer prepares an instance: a backend creates and starts in one call.
func (s *service) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	v, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	box := v.sandboxes[sandboxID]
	if box == nil {
		return "", notFound("sandbox", sandboxID)
	}
	m := config.GetMetadata()
	if err := s.cancelQueued(ctx, v, sandboxID, m.GetName()); err != nil {
		return "", err
	}
	c := containerOf(config, s.support)
	c.Pod, c.Group = podOf(box.Metadata), box.group
	// The same key for the same attempt, unless that one has run.
	for i := 0; ; i++ {
		c.Key = keyOf(c.Pod.Name+"-"+m.GetName(), c.Pod.UID, "/", box.Metadata.Attempt, "/", m.GetName(), "/", m.GetAttempt(), "/", i)
		if old := v.instances[c.Key]; old == nil || old.state == nil {
			break
		}
	}
	if config.LogPath != "" && sandboxConfig.GetLogDirectory() != "" {
		c.LogPath = filepath.Join(sandboxConfig.LogDirectory, config.LogPath)
	}
	rec := record{Node: s.node, Sandbox: box.sandboxRecord, Container: &containerRecord{
		Created: time.Now().UnixNano(), Metadata: m, Image: config.Image, Labels: config.Labels, Annotations: config.Annotations,
		LogPath: c.LogPath, StopSignal: config.StopSignal,
	}}
	for _, mount := range config.Mounts { // the termination message is read from it
		if s.support.Mounts && mount.ContainerPath == podconfig.AbsolutePath(config.Annotations[podconfig.AnnotationMessagePath]) {
			rec.Container.Mounts = append(rec.Container.Mounts, mount)
		}
	}
	if c.Record, err = rec.encode(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.created.add(&created{c, rec}); err != nil {
		return "", fmt.Errorf("containers: %w", err)
	}
	return c.Key, nil
}

// cancelQueued ends other instances of a container that have not started: a queued one could start
// beside its replacement.
func (s *service) cancelQueued(ctx context.Context, v *view, sandboxID, name string) error {
	for key, c := range v.instances {
		if c.sandbox != sandboxID || c.Metadata.Name != name {
			continue
		}
		if c.state == nil {
			s.mu.Lock()
			s.created.remove(key)
			s.mu.Unlock()
		} else if c.state.Phase == Queued {
			if err := s.backend.Stop(ctx, c.state.ID, 0); err != nil {
				return backendError(ctx, "stop instance "+c.state.ID, err)
			}
		}
	}
	return nil
}

// containerOf converts a CRI container.
func containerOf(config *runtimeapi.ContainerConfig, support Support) Container {
	c := Container{
		Name: config.GetMetadata().GetName(), Attempt: config.GetMetadata().GetAttempt(), Image: config.GetImage().GetImage(),
		Command: config.Command, Args: config.Args, WorkingDir: config.WorkingDir, Stdin: config.Stdin, TTY: config.Tty, Config: config,
	}
	for _, e := range config.Envs {
		c.Env = append(c.Env, EnvVar{e.Key, string(e.Value)})
	}
	if support.Files {
		c.Volumes = volumesOf(config.Mounts)
	}
	if support.Mounts {
		for _, m := range config.Mounts {
			if strings.HasPrefix(m.HostPath, filesRoot) {
				continue
			}
			c.Mounts = append(c.Mounts, Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, ReadOnly: m.Readonly})
		}
	}
	if r := config.GetLinux().GetResources(); r != nil {
		c.Memory = r.MemoryLimitInBytes
		if r.CpuPeriod > 0 && r.CpuQuota > 0 {
			c.CPUMillis = r.CpuQuota * 1000 / r.CpuPeriod
		}
	}
	return c
}

// StartContainer runs the instance, with the same Key if it was tried before, and returns when the
// instance has started. A queued one is waited for until ctx is done; the next call continues.
func (s *service) StartContainer(ctx context.Context, id string) error {
	s.mu.Lock()
	c := s.created.read()[id]
	s.mu.Unlock()
	if c != nil {
		run := c.Container
		var err error
		if run.Volumes, err = s.files.fill(&run); err != nil {
			return err
		}
		backendID, err := s.backend.Run(ctx, run)
		if err != nil {
			return backendError(ctx, "run instance", err)
		}
		s.mu.Lock()
		s.ids[id] = backendID
		s.mu.Unlock()
	}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		v, err := s.read(ctx)
		if err != nil {
			return err
		}
		switch inst := v.instances[id]; {
		case inst == nil:
			return notFound("instance", id)
		case inst.state != nil && inst.state.Phase == Exited && inst.state.StartedAt.IsZero():
			return fmt.Errorf("containers: instance did not start: %s", inst.state.Message)
		case inst.state != nil && inst.state.Phase != Queued:
			return nil
		}
		select {
		case <-ctx.Done():
			if v.instances[id].state == nil {
				return fmt.Errorf("containers: Run has returned, but List has no instance with the Key %s and its Record, which the backend must keep unchanged: %w", id, ctx.Err())
			}
			return fmt.Errorf("containers: the backend has queued the instance: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

// backendID returns the backend's ID of an instance, "" if it was not run.
func (s *service) backendID(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	found, c := s.ids[id], s.created.read()[id]
	s.mu.Unlock()
	if found != "" {
		return found, nil
	}
	v, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	inst := v.instances[id]
	switch {
	case inst != nil && inst.state != nil:
		return inst.state.ID, nil
	case inst != nil || c != nil:
		return "", nil
	}
	return "", notFound("instance", id)
}

// StopContainer stops an instance. One that was not run is discarded.
func (s *service) StopContainer(ctx context.Context, id string, grace int64) error {
	backendID, err := s.backendID(ctx, id)
	if err != nil {
		return err
	}
	if backendID != "" {
		if err := s.backend.Stop(ctx, backendID, time.Duration(max(grace, 0))*time.Second); err != nil {
			return backendError(ctx, "stop instance "+backendID, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created.remove(id)
	return nil
}

func (s *service) RemoveContainer(ctx context.Context, id string) error {
	v, err := s.read(ctx)
	if err != nil {
		return err
	}
	inst := v.instances[id]
	if inst == nil {
		return nil
	}
	if inst.state != nil {
		if inst.state.Phase != Exited {
			err = s.backend.Stop(ctx, inst.state.ID, 0)
		}
		if err == nil {
			err = s.backend.Remove(ctx, inst.state.ID)
		}
		if err != nil {
			return backendError(ctx, "remove instance "+inst.state.ID, err)
		}
	}
	s.logs.remove(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created.remove(id)
	delete(s.ids, id)
	return nil
}

// ReopenContainerLog continues in a new file, if the runtime writes the logs.
func (s *service) ReopenContainerLog(_ context.Context, id string) error {
	if s.logs.reader == nil {
		return unsupported("ReopenContainerLog", "the backend writes the logs")
	}
	return s.logs.reopen(id)
}

func (s *service) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	v, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	var list []*runtimeapi.Container
	for key, c := range v.instances {
		if filter.GetId() != "" && filter.Id != key || filter.GetPodSandboxId() != "" && filter.PodSandboxId != c.sandbox ||
			filter.GetState() != nil && filter.State.State != c.phase() || !selects(filter.GetLabelSelector(), c.Labels) {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: key, PodSandboxId: c.sandbox, Metadata: c.Metadata, Image: c.Image, ImageRef: c.Image.GetImage(), ImageId: c.Image.GetImage(),
			State: c.phase(), CreatedAt: c.Created, Labels: c.Labels, Annotations: c.Annotations,
		})
	}
	return list, nil
}

func (s *service) ContainerStatus(ctx context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	v, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	c := v.instances[id]
	if c == nil {
		return nil, notFound("instance", id)
	}
	if c.state != nil && c.state.Phase == Exited {
		s.logs.wait(ctx, c)
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
}

func (c *instance) phase() runtimeapi.ContainerState {
	switch {
	case c.state == nil || c.state.Phase == Queued:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	case c.state.Phase == Running:
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case c.state.Phase == Exited:
		return runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

func (c *instance) status() *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id: c.key, Metadata: c.Metadata, State: c.phase(), CreatedAt: c.Created,
		Image: c.Image, ImageRef: c.Image.GetImage(), ImageId: c.Image.GetImage(), Labels: c.Labels, Annotations: c.Annotations,
		Mounts: c.Mounts, LogPath: c.LogPath, StopSignal: c.StopSignal,
	}
	if c.state == nil || c.state.Phase == Queued {
		return st
	}
	st.StartedAt = nanos(c.state.StartedAt)
	if c.state.Phase != Exited {
		return st
	}
	st.FinishedAt, st.ExitCode, st.Reason, st.Message = nanos(c.state.FinishedAt), c.state.ExitCode, c.state.Reason, c.state.Message
	st.Message = st.Message[max(0, len(st.Message)-maxMessage):]
	if st.StartedAt == 0 && st.ExitCode == 0 { // it has not succeeded
		st.ExitCode = notStarted
	}
	if st.FinishedAt == 0 {
		st.FinishedAt = max(st.StartedAt, st.CreatedAt)
	}
	if st.Reason == "" {
		if st.Reason = "Completed"; st.ExitCode != 0 {
			st.Reason = "Error"
		}
	}
	return st
}

const (
	notStarted = 128  // the exit code of containerd for a container that could not be started
	maxMessage = 4096 // bytes of a termination message, from its end
)

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func uidOf(m *runtimeapi.PodSandboxMetadata) types.UID { return types.UID(m.GetUid()) }

// GetContainerEvents implements the CRI's events by a Watcher: only the pod is set.
func (s *service) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	if s.watcher == nil {
		return unsupported("GetContainerEvents", "the backend is no Watcher")
	}
	if connected != nil {
		connected(nil)
	}
	err := s.watcher.Watch(ctx, func(text string) {
		r := decode(text, s.node)
		if r == nil {
			return
		}
		select {
		case <-ctx.Done():
		case events <- &runtimeapi.ContainerEventResponse{PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: r.Sandbox.Metadata}}:
		}
	})
	if err == nil && ctx.Err() == nil {
		err = errors.New("containers: the backend ended the watch")
	}
	return err
}
