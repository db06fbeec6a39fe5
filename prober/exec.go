package prober

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// maxOutput is the maximum number of bytes of a command's output, or of a response body, that
// is read (rule prober-35).
const maxOutput = 10 << 10

// Exec runs a command in the container: exit code 0 is a success, any other a failure.
//
// Whether a command is killed after its timeout depends on the Runtime: runtime/process kills
// it with all its descendants; containerd kills only the command, so scripts of probes should
// use exec.
type Exec struct {
	// Runtime runs the commands. If nil, every probe is an error. If it implements
	// runtime.Checker, it is checked when it has not returned from a command in time; the
	// probe fails if the check succeeds, and is an error otherwise.
	Runtime runtime.Execer
}

// slack is how long after the timeout the runtime may take to return, and then to be checked.
// containerd (1.6 and 2.4) waits without limit while a child of the command has its output open.
const slack = 2 * time.Second

// Probe implements [Handler].
func (e Exec) Probe(ctx context.Context, t Target) (Outcome, error) {
	switch {
	case t.Probe.Exec == nil:
		return Outcome{}, errors.New("probe has no exec")
	case len(t.Probe.Exec.Command) == 0:
		return Outcome{}, errors.New("exec has no command")
	case e.Runtime == nil:
		return Outcome{}, fmt.Errorf("exec: %w", runtime.ErrUnsupported)
	}
	command, err := podenv.ExpandLiterals(t.Probe.Exec.Command, t.Container.Env)
	if err != nil {
		return Outcome{}, fmt.Errorf("expand command: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, t.Timeout+slack)
	defer cancel()
	ran, err := e.Runtime.Exec(bounded, t.ContainerID, command, t.Timeout)
	switch {
	case err == nil && ran.ExitCode == 0:
		return Outcome{Result: runtime.ProbeSuccess, Output: outputOf(ran)}, nil
	case err == nil:
		return Outcome{Result: runtime.ProbeFailure, Output: outputOf(ran)}, nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return Outcome{}, err // does not depend on the container (rule prober-38)
	case (bounded.Err() != nil || errors.Is(err, runtime.ErrUnavailable)) && !e.responds(ctx):
		return Outcome{}, fmt.Errorf("runtime does not respond: %w", err)
	default:
		return Outcome{Result: runtime.ProbeFailure, Output: timeoutMessage(command, t.Timeout)}, nil
	}
}

// responds reports whether the runtime implements Checker and responds.
func (e Exec) responds(ctx context.Context) bool {
	checker, ok := compose.As[runtime.Checker](e.Runtime)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, slack)
	defer cancel()
	_, err := checker.Check(ctx)
	return err == nil
}

// timeoutMessage is the kubelet's message for a command that timed out.
func timeoutMessage(command []string, timeout time.Duration) string {
	return fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(command, " "), timeout)
}

// outputOf returns the beginning of a command's output, standard output first.
func outputOf(r runtime.ExecResult) string {
	var b strings.Builder
	for _, stream := range [][]byte{r.Stdout, r.Stderr} {
		b.Write(stream[:min(len(stream), maxOutput-b.Len())])
	}
	return b.String()
}
