package cri

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kubeparts/kubeparts/runtime"
)

// LogPath implements [runtime.LogReader]. It returns the path that the runtime reports,
// which another agent may have chosen.
func (r *Runtime) LogPath(ctx context.Context, containerID string) (string, error) {
	st, err := r.containerStatus(ctx, runtimeID(containerID))
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(st.LogPath) {
		return "", fmt.Errorf("cri: log of container %s: runtime reported no absolute path: %w", containerID, runtime.ErrUnsupported)
	}
	return st.LogPath, nil
}

// ReopenLog implements [runtime.LogRotator].
func (r *Runtime) ReopenLog(ctx context.Context, containerID string) error {
	if err := r.cfg.Runtime.ReopenContainerLog(r.quiet(ctx), runtimeID(containerID)); err != nil {
		return fmt.Errorf("cri: reopen the log of container %s: %w", containerID, err)
	}
	return nil
}
