package prober

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/podenv"
	"github.com/kubeparts/kubeparts/runtime"
)

// maxOutput is how much of an answer is read and kept, in bytes: what a command
// printed, or the body of a response (prober-35, prober-49).
const maxOutput = 10 << 10

// Exec runs a command in the container: exit code 0 is success, any other is
// failure (prober-34 … prober-39).
//
// Whether a command whose time is up is killed is up to the Runtime; that of
// runtime/process kills it with all that it started (F-06).
type Exec struct {
	// Runtime runs the commands. Required. If it has to wait for the runtime's
	// daemon, so does the probe.
	Runtime runtime.Execer
}

// Probe implements [Handler].
func (e Exec) Probe(ctx context.Context, t Target) (Outcome, error) {
	switch {
	case t.Probe.Exec == nil:
		return Outcome{}, errors.New("the probe has no exec")
	case len(t.Probe.Exec.Command) == 0:
		return Outcome{}, errors.New("the probe's exec has no command")
	case e.Runtime == nil:
		return Outcome{}, errors.New("the runtime runs no commands in containers")
	}
	command := podenv.ExpandLiterals(t.Probe.Exec.Command, t.Container.Env)
	ran, err := e.Runtime.Exec(ctx, t.ContainerID, command, t.Timeout)
	switch {
	case err == nil && ran.ExitCode == 0:
		return Outcome{Result: runtime.ProbeSuccess, Output: printed(ran)}, nil
	case err == nil:
		return Outcome{Result: runtime.ProbeFailure, Output: printed(ran)}, nil
	case timedOut(ctx, err):
		return Outcome{Result: runtime.ProbeFailure, Output: outOfTime(command, t.Timeout)}, nil
	default:
		return Outcome{}, err
	}
}

// timedOut reports whether err says that the command's time was up. A runtime
// that does not answer, and an agent that doesn't want to know any more, say
// nothing about the container (prober-38).
func timedOut(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, runtime.ErrUnavailable) && ctx.Err() == nil
}

// outOfTime is what is said of a command that had to be ended (prober-37).
func outOfTime(command []string, timeout time.Duration) string {
	return fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(command, " "), timeout)
}

// printed returns the beginning of what a command printed, standard output
// first.
func printed(r runtime.ExecResult) string {
	var b strings.Builder
	for _, stream := range [][]byte{r.Stdout, r.Stderr} {
		b.Write(stream[:min(len(stream), maxOutput-b.Len())])
	}
	return b.String()
}
