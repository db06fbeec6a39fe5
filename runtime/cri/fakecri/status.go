package fakecri

import (
	"context"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodSandboxStatus returns the status of a sandbox. A stopped one has no address.
func (r *Runtime) PodSandboxStatus(ctx context.Context, podSandboxID string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return onSandbox(ctx, r, r.ofSandbox("PodSandboxStatus", podSandboxID), func(s *sandbox) (*runtimeapi.PodSandboxStatusResponse, error) {
		resp := &runtimeapi.PodSandboxStatusResponse{Status: s.status()}
		if verbose {
			resp.Info = map[string]string{"info": infoOf(map[string]any{
				"sandboxID": s.id, "runtimeHandler": s.handler, "config": s.config, "resources": s.resources, "overhead": s.overhead,
			})}
		}
		return resp, nil
	})
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: s.ip},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
		Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
	}
}

// ContainerStatus returns the status of a container.
func (r *Runtime) ContainerStatus(ctx context.Context, containerID string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return onContainer(ctx, r, r.ofContainer("ContainerStatus", containerID), func(c *container) (*runtimeapi.ContainerStatusResponse, error) {
		resp := &runtimeapi.ContainerStatusResponse{Status: c.status()}
		if verbose {
			resp.Info = map[string]string{"info": infoOf(map[string]any{
				"sandboxID": c.sandbox.id, "config": c.config, "removing": false,
			})}
		}
		return resp, nil
	})
}

func (c *container) status() *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state,
		CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.ended,
		ExitCode: c.code, Reason: c.reason, Message: c.message,
		Image: c.image.spec, ImageRef: c.image.ref, ImageId: c.image.id,
		Labels: c.config.Labels, Annotations: c.config.Annotations, Mounts: c.config.Mounts,
		LogPath: c.logPath(), Resources: c.resources, User: c.user(), StopSignal: c.stopSignal(),
	}
	return st
}

// logPath returns the path of the container's log, or "".
func (c *container) logPath() string {
	if c.config.LogPath == "" || c.sandbox.config.LogDirectory == "" {
		return ""
	}
	return filepath.Join(c.sandbox.config.LogDirectory, c.config.LogPath)
}

func (c *container) stopSignal() runtimeapi.Signal {
	if s := c.config.GetStopSignal(); s != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return s
	}
	return runtimeapi.Signal_SIGNAL_SIGTERM
}

// user returns the user that the container runs as.
func (c *container) user() *runtimeapi.ContainerUser {
	sc := c.config.GetLinux().GetSecurityContext()
	uid, gid := sc.GetRunAsUser().GetValue(), sc.GetRunAsGroup().GetValue()
	return &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{
		Uid: uid, Gid: gid, SupplementalGroups: append([]int64{gid}, sc.GetSupplementalGroups()...),
	}}
}
