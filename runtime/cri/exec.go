package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// Exec implements [runtime.Execer] with ExecSync.
func (r *Runtime) Exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	bounded := ctx
	if whole := timeout.Truncate(time.Second); whole != timeout {
		// The CRI has seconds, and 0 means no timeout: the fraction is rounded up for
		// the runtime and enforced by the context.
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = whole + time.Second
	}
	stdout, stderr, err := r.cfg.Runtime.ExecSync(r.quiet(bounded), runtimeID(containerID), cmd, timeout)
	result := runtime.ExecResult{Stdout: stdout, Stderr: stderr}
	// The CRI services report a failed command as an error with the exit status.
	if exit, ok := errors.AsType[interface {
		error
		ExitStatus() int
	}](err); ok {
		result.ExitCode = int32(exit.ExitStatus())
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("cri: exec %q in container %s: %w", cmd, containerID, joinContextErr(ctx, err))
	}
	return result, nil
}
