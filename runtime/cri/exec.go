package cri

import (
	"context"
	"errors"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// Exec implements [runtime.Execer] with ExecSync. The text of an error is the runtime's: that of a
// probe is in an event, which the kubelet writes without a prefix.
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
		if cause := contextErr(ctx, err); cause != nil && !errors.Is(err, cause) {
			err = &classified{err, cause}
		}
		return result, err
	}
	return result, nil
}
