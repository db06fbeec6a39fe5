package runtimetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Exec calls the container's Behavior.Exec; if it is nil, every command succeeds
// without output. It returns an error if the container does not run. See
// [runtime.Execer].
func (r *Runtime) Exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	var stdout, stderr bytes.Buffer
	code, err := r.exec(ctx, containerID, cmd, timeout, runtime.Streams{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return runtime.ExecResult{}, err
	}
	return runtime.ExecResult{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: code}, nil
}

// StreamExec runs a command as Exec does, without timeout, connected to the
// streams. See [runtime.StreamExecer].
func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (int32, error) {
	return r.exec(ctx, containerID, cmd, 0, s)
}

func (r *Runtime) exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration, s runtime.Streams) (code int32, err error) {
	v := r.instance(containerID)
	var uid types.UID
	if v != nil {
		uid = v.pod.uid
	}
	err = r.call(ctx, "Exec", uid, func() (err error) {
		if v == nil {
			return fmt.Errorf("runtimetest: exec: container %s: %w", containerID, runtime.ErrNotFound)
		}
		if !r.runs(v) {
			return fmt.Errorf("runtimetest: exec: container %s is not running", containerID)
		}
		if v.behavior.Exec == nil {
			return nil
		}
		ctx := ctx
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		if code, err = v.behavior.Exec(ctx, cmd, fake.Streams(s)); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("runtimetest: exec in %s: %w", containerID, err)
		}
		return nil
	})
	return code, err
}

func (r *Runtime) runs(v *instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.status.State == runtime.ContainerRunning
}

func (r *Runtime) instance(id string) *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instances[id]
}
