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

// Exec calls the container's Behavior.Exec; if it is nil, Behavior.Commands apply. It
// returns an error if the container does not run. See [runtime.Execer].
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
		do := v.behavior.Exec
		if do == nil {
			rule := v.behavior.Command(cmd)
			if rule < 0 {
				return nil
			}
			do = func(ctx context.Context, _ []string, s runtime.Streams) (int32, error) {
				return v.behavior.Commands[rule].Run(ctx, s, r.count(v, rule))
			}
		}
		ctx := ctx
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		if code, err = do(ctx, cmd, fake.Streams(s)); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("runtimetest: exec in %s: %w", containerID, err)
		}
		return nil
	})
	return code, err
}

// count returns how often a rule of Behavior.Commands was applied before, and counts it.
func (r *Runtime) count(v *instance, rule int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.ruled == nil {
		v.ruled = map[int]int{}
	}
	v.ruled[rule]++
	return v.ruled[rule] - 1
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

// An Instance is an instance of a container.
type Instance struct {
	UID      types.UID // of its pod
	Status   runtime.ContainerStatus
	Behavior *fake.Behavior // must not be modified

	// Exited is closed when it exits.
	Exited <-chan struct{}
}

// Instance returns an instance of a container by its ID; false if it does not exist.
func (r *Runtime) Instance(id string) (Instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.instances[id]
	if v == nil {
		return Instance{}, false
	}
	return Instance{UID: v.pod.uid, Status: v.status, Behavior: v.behavior, Exited: v.done}, true
}
