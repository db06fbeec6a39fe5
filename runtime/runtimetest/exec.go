package runtimetest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// Exec calls the container's Behavior.Exec. It returns an error if the
// container does not run. See [runtime.Execer].
func (r *Runtime) Exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	v := r.instance(containerID)
	call := Call{Method: "Exec"}
	if v != nil {
		call.UID = v.pod.uid
	}
	var out runtime.ExecResult
	err := r.call(ctx, call, func() error {
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
		var err error
		if out, err = v.behavior.Exec(ctx, cmd); err != nil {
			return fmt.Errorf("runtimetest: exec in %s: %w", containerID, err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("runtimetest: exec in %s: %w", containerID, err)
		}
		return nil
	})
	if err != nil {
		return runtime.ExecResult{}, err
	}
	return out, nil
}

// StreamExec runs a command as Exec does, without timeout, and writes its output
// at the end. Stdin is not read, and TTY only merges the outputs. See
// [runtime.StreamExecer].
func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (int32, error) {
	res, err := r.Exec(ctx, containerID, cmd, 0)
	if err != nil {
		return 0, err
	}
	if s.TTY {
		s.Stderr = s.Stdout
	}
	for _, out := range []struct {
		to   io.Writer
		text []byte
	}{{s.Stdout, res.Stdout}, {s.Stderr, res.Stderr}} {
		if out.to == nil {
			continue
		}
		if _, err := out.to.Write(out.text); err != nil {
			return 0, fmt.Errorf("runtimetest: exec in %s: %w", containerID, err)
		}
	}
	return res.ExitCode, nil
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
