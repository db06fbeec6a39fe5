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
// runtime/process kills it with all that it started (F-06). containerd kills the
// command, and not what that has started: use exec in the scripts of probes.
type Exec struct {
	// Runtime runs the commands. Nil: none can be run. If it is a
	// runtime.Checker, too, it is asked how it is when it does not end a
	// command in time: that of a runtime that is well has failed.
	Runtime runtime.Execer
}

// slack is how long after its time a command may take to be ended. containerd
// waits for ever for all who hold its output, its children too (measured with
// 1.6 and 2.4).
const slack = 2 * time.Second

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
	command, err := podenv.ExpandLiterals(t.Probe.Exec.Command, t.Container.Env)
	if err != nil {
		return Outcome{}, fmt.Errorf("the command is %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, t.Timeout+slack)
	defer cancel()
	ran, err := e.Runtime.Exec(bounded, t.ContainerID, command, t.Timeout)
	switch {
	case err == nil && ran.ExitCode == 0:
		return Outcome{Result: runtime.ProbeSuccess, Output: printed(ran)}, nil
	case err == nil:
		return Outcome{Result: runtime.ProbeFailure, Output: printed(ran)}, nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return Outcome{}, err // it says nothing of the container (prober-38)
	case (bounded.Err() != nil || errors.Is(err, runtime.ErrUnavailable)) && !e.answers(ctx):
		return Outcome{}, fmt.Errorf("the runtime does not answer: %w", err)
	default:
		return Outcome{Result: runtime.ProbeFailure, Output: outOfTime(command, t.Timeout)}, nil
	}
}

// answers reports whether the runtime is known to answer.
func (e Exec) answers(ctx context.Context) bool {
	checker, ok := runtime.As[runtime.Checker](e.Runtime)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, slack)
	defer cancel()
	_, err := checker.Check(ctx)
	return err == nil
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
