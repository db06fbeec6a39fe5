package cri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
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

// CheckpointPod implements [runtime.PodCheckpointer].
func (r *Runtime) CheckpointPod(ctx context.Context, pod *v1.Pod, location string) error {
	if pod == nil || pod.UID == "" {
		return errors.New("cri: checkpoint pod: the pod is nil or has no UID")
	}
	fail := func(err error) error {
		return fmt.Errorf("cri: checkpoint pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if !filepath.IsAbs(location) {
		return fail(fmt.Errorf("the location %q is not an absolute path", location))
	}
	st, err := r.PodStatus(ctx, pod.UID)
	if err != nil {
		return fail(err)
	}
	req := &runtimeapi.CheckpointPodRequest{OutputPath: location}
	if len(st.Sandboxes) > 0 && st.Sandboxes[0].State == runtime.SandboxReady {
		req.PodSandboxId = st.Sandboxes[0].ID
	}
	for c := range podspec.LongRunning(pod) {
		inst := running(st, c.Name)
		if inst == nil || inst.SandboxID != req.PodSandboxId {
			return fail(fmt.Errorf("container %s does not run", c.Name))
		}
		req.ContainerIds = append(req.ContainerIds, runtimeID(inst.ID))
	}
	if len(req.ContainerIds) == 0 {
		return fail(errors.New("it has no containers"))
	}
	if err := r.cfg.Runtime.CheckpointPod(r.quiet(ctx), req); err != nil {
		return fail(err)
	}
	return nil
}
