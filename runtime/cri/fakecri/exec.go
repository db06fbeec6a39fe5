package fakecri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// maxExecOutput is the maximum number of bytes that ExecSync returns of each output; the
// rest is discarded, as by containerd.
const maxExecOutput = 16 << 20

// ExecSync runs a command with [fake.Behavior].Exec or Commands, and returns its output, at
// most 16 MiB each. For an exit code other than 0 the error is a utilexec.CodeExitError,
// as from the CRI client. After a timeout above 0 it returns DeadlineExceeded. If the
// container exits, the command is killed with 137.
func (r *Runtime) ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	var out, errOut capped
	code, err := call(ctx, r, r.ofContainer("ExecSync", containerID), func(ctx context.Context) (int32, error) {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return r.exec(ctx, containerID, cmd, runtime.Streams{Stdout: &out, Stderr: &errOut})
	})
	switch {
	case err != nil && timeout > 0 && status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil:
		return nil, nil, status.Errorf(codes.DeadlineExceeded, "fakecri: exec in container %q: timeout %v exceeded: %v", containerID, timeout, context.DeadlineExceeded)
	case err != nil:
		return nil, nil, err
	case code != 0:
		err = utilexec.CodeExitError{
			Err:  fmt.Errorf("fakecri: command %q exited with %d: %s", strings.Join(cmd, " "), code, errOut.data),
			Code: int(code),
		}
	}
	return out.data, errOut.data, err
}

// StreamExec runs a command like ExecSync, connected to the streams. Its name in
// Call.Method is StreamExec.
func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (int32, error) {
	return call(ctx, r, r.ofContainer("StreamExec", containerID), func(ctx context.Context) (int32, error) {
		return r.exec(ctx, containerID, cmd, s)
	})
}

// Exec returns Unimplemented if the command could be run, because there is no streaming
// server. Use StreamExec, or package runtime/cri/serve for clients.
func (r *Runtime) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return call(ctx, r, r.ofContainer("Exec", req.GetContainerId()), func(context.Context) (*runtimeapi.ExecResponse, error) {
		if _, _, err := r.running("exec in", req.GetContainerId()); err != nil {
			return nil, err
		}
		return nil, unimplemented("Exec", "StreamExec runs commands")
	})
}

// errEnded is the error of commands whose container exits.
var errEnded = errors.New("container has exited")

// exec runs a command until it or its container exits or ctx is done.
func (r *Runtime) exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	c, gone, err := r.running("exec in", id)
	if err != nil {
		return 0, err
	}
	if len(cmd) == 0 {
		return 0, refused("exec in container %s: no command", c.id)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-gone:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	code, err := r.answer(ctx, c, cmd, fake.Streams(s))
	switch {
	case context.Cause(ctx) == errEnded:
		return codeKill, nil
	case ctx.Err() != nil:
		return 0, ended(ctx)
	}
	return code, err
}

// running returns a running container, and a channel that is closed when it exits.
func (r *Runtime) running(what, id string) (*container, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.containers.find(id)
	if err != nil {
		return nil, nil, unknownID("container", id, err)
	}
	if !c.running() {
		return nil, nil, refused("%s container %s: it is %v", what, c.id, stateOf(c.state))
	}
	return c, c.goneLocked(), nil
}

// answer runs a command as specified by the behavior of the container.
func (r *Runtime) answer(ctx context.Context, c *container, cmd []string, s runtime.Streams) (int32, error) {
	if do := c.behavior.Exec; do != nil {
		return do(ctx, slices.Clone(cmd), s)
	}
	i := c.behavior.Command(cmd)
	if i < 0 {
		return 0, nil
	}
	r.mu.Lock()
	if c.ruled == nil {
		c.ruled = map[int]int{}
	}
	earlier := c.ruled[i]
	c.ruled[i]++
	r.mu.Unlock()
	return c.behavior.Commands[i].Run(ctx, s, earlier)
}

// capped keeps the first maxExecOutput bytes.
type capped struct{ data []byte }

func (c *capped) Write(p []byte) (int, error) {
	c.data = append(c.data, p[:min(len(p), maxExecOutput-len(c.data))]...)
	return len(p), nil
}
