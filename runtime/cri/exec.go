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
		// The CRI counts in seconds, and none is for ever: a fraction is
		// rounded up there and kept here.
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = whole + time.Second
	}
	stdout, stderr, err := r.cfg.Runtime.ExecSync(r.quiet(bounded), bare(containerID), cmd, timeout)
	result := runtime.ExecResult{Stdout: stdout, Stderr: stderr}
	// The services of the CRI report a command that failed as an error that
	// knows the exit code (rt-149).
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
