//go:build linux || darwin

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// maxExecOutput is the maximum number of bytes kept of each output; the rest is
// discarded, so that a probe cannot fill the agent's memory.
const maxExecOutput = 16 << 20

// ExecSync runs a command with the environment, working directory and user of the
// main process, and returns its output. A timeout of 0 or less means none. At the
// timeout or when ctx is done the command is killed, and the error is
// DeadlineExceeded or Canceled. For an exit code other than 0 the error is a
// utilexec.CodeExitError, as from the CRI client.
//
// The command is a child of the agent, in a session of its own. It is killed when
// the container exits and, on Linux, when the agent exits. Remaining processes of
// its process group are killed when it exits.
func (r *Runtime) ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var out, errOut capped
	code, err := r.exec(ctx, containerID, cmd, func(command *exec.Cmd) error {
		command.Stdout, command.Stderr = &out, &errOut
		return nil
	}, func() {})
	if err != nil {
		return nil, nil, err
	}
	if code != 0 {
		err = utilexec.CodeExitError{
			Err:  fmt.Errorf("process: command %q exited with %d: %s", strings.Join(cmd, " "), code, errOut.Bytes()),
			Code: code,
		}
	}
	return out.Bytes(), errOut.Bytes(), err
}

// exec runs a command in a container until it exits, the container exits or ctx is
// done, and returns its exit code. connect sets its input and output before it
// starts; started is called after the start or its failure.
func (r *Runtime) exec(ctx context.Context, containerID string, cmd []string, connect func(*exec.Cmd) error, started func()) (int, error) {
	c, err := r.get(containerID)
	if err != nil {
		return 0, err
	}
	fail := func(code codes.Code, why any) error {
		return status.Errorf(code, "process: exec %q in container %s (%s): %v", strings.Join(cmd, " "), c.rec.Name, containerID, why)
	}
	if c.state() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return 0, fail(codes.FailedPrecondition, "it does not run")
	}
	if len(cmd) == 0 {
		return 0, fail(codes.InvalidArgument, "no command")
	}
	spec := c.rec.Process
	path, err := findCommand(cmd[0], spec.Dir, lookup(spec.Env, "PATH"))
	if err != nil {
		return 0, fail(codes.Unknown, err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)

	command := &exec.Cmd{
		Path: path, Args: cmd, Env: spec.environ(), Dir: spec.Dir, SysProcAttr: attributes(spec.User),
		// For a descendant that left the group and has the pipes open.
		WaitDelay: waitDelay,
	}
	if err := connect(command); err != nil {
		return 0, fail(codes.Unknown, err)
	}
	var (
		wg     sync.WaitGroup
		code   int
		killed error
		runErr error
	)
	wg.Go(func() {
		if awaitEnd(ctx, r.dir.alive(containerID)) == nil {
			end(errContainerEnded)
		}
	})
	wg.Go(func() {
		// A thread that ends with this goroutine: the kernel ties the parent-death
		// signal to it, and no_new_privs cannot be unset.
		goruntime.LockOSThread()
		defer end(nil)
		if spec.NoNewPrivs {
			if runErr = forbidNewPrivs(); runErr != nil {
				started()
				return
			}
		}
		code, killed, runErr = runGroup(ctx, command, started)
	})
	wg.Wait()

	switch {
	case runErr != nil:
		return 0, fail(codes.Unknown, runErr)
	case errors.Is(killed, errContainerEnded):
		return 0, fail(codes.FailedPrecondition, killed)
	case errors.Is(killed, context.DeadlineExceeded):
		return 0, fail(codes.DeadlineExceeded, "timed out")
	case killed != nil:
		return 0, fail(codes.Canceled, killed)
	}
	return code, nil
}

// waitDelay is how long to wait for the output of a terminated command that
// another process has open.
const waitDelay = 200 * time.Millisecond

var errContainerEnded = errors.New("its container ended")

// runGroup runs a command until it exits or ctx is done, in which case it kills
// the group; killed is then the reason. No process of the group is left.
func runGroup(ctx context.Context, command *exec.Cmd, started func()) (code int, killed, err error) {
	if ctx.Err() != nil {
		started()
		return 0, context.Cause(ctx), nil
	}
	err = command.Start()
	started()
	if err != nil {
		return 0, nil, err
	}
	group := command.Process.Pid
	var mu sync.Mutex // guards killed and ended
	ended := false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			killed = context.Cause(ctx)
			unix.Kill(-group, unix.SIGKILL)
		}
	})
	// The PID is not reused until the process is reaped: kill first.
	awaitExit(group)
	mu.Lock()
	ended = true
	why := killed
	mu.Unlock()
	stop()
	unix.Kill(-group, unix.SIGKILL)
	err = command.Wait()
	if command.ProcessState == nil {
		return 0, why, err
	}
	code, sig := exitOf(command.ProcessState.Sys().(syscall.WaitStatus))
	if sig != 0 {
		code = 128 + sig
	}
	return code, why, nil
}

// A capped buffer discards data beyond its limit.
type capped struct{ bytes.Buffer }

func (b *capped) Write(p []byte) (int, error) {
	if room := maxExecOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// ReadFrom replaces that of the embedded buffer, which has no limit.
func (b *capped) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{b}, src)
}
