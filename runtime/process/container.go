package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A container is one instance: it is created, started once, and exits.
//
//	created ──process.json has a process──▶ running ──exits/<id>.json──▶ exited
//	   └────────────── the command could not be executed ──────────────────▲
//
// The files are authoritative; inspect in inspect.go updates the fields from them.
type container struct {
	rec containerRecord // never changes

	mu       sync.Mutex // guards the fields below
	starting bool       // a StartContainer is in progress
	removed  bool       // it must not be started
	process  *processRecord
	exit     *exitRecord

	// supervisor is not nil if it is a child of this process, which must reap it.
	supervisor *os.Process

	// published is the state of the last published event.
	published runtimeapi.ContainerState
}

func (c *container) stateLocked() runtimeapi.ContainerState {
	switch {
	case c.exit != nil:
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case c.process != nil && c.process.Process.PID != 0:
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return runtimeapi.ContainerState_CONTAINER_CREATED
}

func (c *container) state() runtimeapi.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked()
}

// main returns the identity of the main process.
func (c *container) main() identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return identity{}
	}
	return c.process.Process
}

// find returns the containers that match, in no particular order.
func (r *Runtime) find(match func(*container) bool) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*container
	for _, c := range r.containers {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

// get inspects and returns a container. It returns NotFound for an unknown ID.
func (r *Runtime) get(id string) (*container, error) {
	r.mu.Lock()
	c, ok := r.containers[id]
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if !ok {
		return nil, status.Errorf(codes.NotFound, "process: container %q not found", id)
	}
	r.refresh(c)
	return c, nil
}

// ListContainers returns the containers that match all parts of the filter.
func (r *Runtime) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	var list []*runtimeapi.Container
	for _, c := range r.find(func(c *container) bool {
		return (filter.GetId() == "" || filter.GetId() == c.rec.ID) &&
			(filter.GetPodSandboxId() == "" || filter.GetPodSandboxId() == c.rec.SandboxID) &&
			selects(filter.GetLabelSelector(), c.rec.Labels)
	}) {
		r.refresh(c)
		state := c.state()
		if filter.GetState() != nil && filter.GetState().GetState() != state {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.rec.ID, PodSandboxId: c.rec.SandboxID, Metadata: c.metadata(), Image: c.image(),
			ImageRef: c.rec.Image, ImageId: c.rec.Image, State: state, CreatedAt: c.rec.CreatedAt,
			Labels: c.rec.Labels, Annotations: c.rec.Annotations,
		})
	}
	return list, nil
}

// ContainerStatus returns the status of a container. With verbose, the info has
// the PIDs of the process and its supervisor. It returns NotFound for an unknown
// ID.
func (r *Runtime) ContainerStatus(_ context.Context, containerID string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.get(containerID)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: c.status()}
	if verbose {
		resp.Info = map[string]string{"dir": r.dir.container(containerID), "command": c.rec.Process.Path}
		c.mu.Lock()
		if c.process != nil {
			resp.Info["pid"] = fmt.Sprint(c.process.Process.PID)
			resp.Info["supervisorPid"] = fmt.Sprint(c.process.Supervisor.PID)
		}
		c.mu.Unlock()
	}
	return resp, nil
}

func (c *container) metadata() *runtimeapi.ContainerMetadata {
	return &runtimeapi.ContainerMetadata{Name: c.rec.Name, Attempt: c.rec.Attempt}
}

func (c *container) image() *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: c.rec.Image, UserSpecifiedImage: c.rec.UserImage, Annotations: c.rec.ImageAnnotations}
}

func (c *container) status() *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := &runtimeapi.ContainerStatus{
		Id: c.rec.ID, Metadata: c.metadata(), State: c.stateLocked(), CreatedAt: c.rec.CreatedAt,
		Image: c.image(), ImageRef: c.rec.Image, ImageId: c.rec.Image,
		Labels: c.rec.Labels, Annotations: c.rec.Annotations, LogPath: c.rec.Process.LogPath,
		StopSignal: signalName(c.stopSignal()), User: c.user(),
	}
	for _, m := range c.rec.Mounts {
		st.Mounts = append(st.Mounts, &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.Readonly})
	}
	if c.process != nil {
		st.StartedAt = c.process.StartedAt
	}
	if c.exit != nil {
		st.StartedAt, st.FinishedAt = c.exit.StartedAt, c.exit.FinishedAt
		st.ExitCode, st.Reason, st.Message = c.exit.Code, c.exit.Reason, c.exit.Message
	}
	return st
}

func (c *container) user() *runtimeapi.ContainerUser {
	u := &runtimeapi.LinuxContainerUser{Uid: int64(os.Geteuid()), Gid: int64(os.Getegid())}
	if cred := c.rec.Process.User; cred != nil {
		u.Uid, u.Gid = int64(cred.UID), int64(cred.GID)
		for _, g := range cred.Groups {
			u.SupplementalGroups = append(u.SupplementalGroups, int64(g))
		}
	}
	return &runtimeapi.ContainerUser{Linux: u}
}

// RemoveContainer removes a container and its working directory, after killing it
// if it runs. Its log is kept. A container that does not exist is not an error.
func (r *Runtime) RemoveContainer(ctx context.Context, containerID string) error {
	c, err := r.get(containerID)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return r.remove(ctx, c)
}

func (r *Runtime) remove(ctx context.Context, c *container) error {
	// Set before the kill, so that the container cannot be started in between.
	c.mu.Lock()
	c.removed = true
	c.mu.Unlock()
	if err := r.stop(ctx, c, 0); err != nil {
		return err
	}
	// The supervisor exits after it has recorded the exit.
	if err := awaitEnd(ctx, r.dir.alive(c.rec.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(ctxCode(ctx), "process: remove container %s: %v", c.rec.ID, err)
	}
	r.refresh(c) // reaps

	var gone string
	defer func() { r.clear(ctx, gone) }() // without the lock: it may be large
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.containers[c.rec.ID] != c {
		return nil // removed by another call
	}
	var err error
	gone, err = r.dir.discard(r.dir.container(c.rec.ID))
	if err == nil {
		if err = os.Remove(r.dir.exit(c.rec.ID)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return status.Errorf(codes.Internal, "process: remove container %s: %v", c.rec.ID, err)
	}
	delete(r.containers, c.rec.ID)
	r.publishLocked(c.rec.SandboxID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, c.rec.ID)
	return nil
}

// ctxCode returns the status code for a failure that ctx may have caused.
func ctxCode(ctx context.Context) codes.Code {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Code()
	}
	return codes.Internal
}

// workDir returns the default working directory of a container.
func (r *Runtime) workDir(id string) string { return filepath.Join(r.dir.container(id), "work") }
