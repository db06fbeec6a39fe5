package cri

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Checkpoint implements [runtime.Checkpointer].
func (r *Runtime) Checkpoint(ctx context.Context, containerID, location string, timeout time.Duration) error {
	if !filepath.IsAbs(location) {
		return fmt.Errorf("cri: checkpoint container %s: the location %q is not an absolute path", containerID, location)
	}
	if timeout < 0 {
		return fmt.Errorf("cri: checkpoint container %s: the timeout is negative: %v", containerID, timeout)
	}
	err := r.cfg.Runtime.CheckpointContainer(r.quiet(ctx), &runtimeapi.CheckpointContainerRequest{
		ContainerId: runtimeID(containerID), Location: location,
		Timeout: int64((timeout + time.Second - 1) / time.Second),
	})
	if err != nil {
		return fmt.Errorf("cri: checkpoint container %s: %w", containerID, err)
	}
	return nil
}
