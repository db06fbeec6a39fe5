package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// execRequirements are the requirements of [runtime.Execer].
var execRequirements = []requirement{
	{
		name:     "ExecReturnsOutputAndExitCode",
		text:     "Exec runs a command in the container and returns when it exits; a non-zero exit code is in the result and is not an error.",
		contract: "Execer.Exec, ExecResult",
		cause:    "a non-zero exit code is returned as an error",
		needs:    []string{"Execer", "Commands.Print", "Commands.Block"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			id := t.container(t.up(pod), "long").ID
			for _, code := range []int32{0, 3} {
				res, err := t.exec(t.Context(), id, t.suite.Commands.Print("hello", code), t.suite.Timing.Timeout)
				if err != nil || res.ExitCode != code || string(res.Stdout) != "hello" {
					t.Errorf("Exec of a command that prints hello and exits with %d: %+v, %v", code, res, err)
				}
			}
			if res, err := t.exec(t.Context(), id+"-not", t.suite.Commands.Print("hello", 0), t.suite.Timing.Timeout); err == nil {
				t.Errorf("Exec in a container that does not exist: %+v, no error", res)
			}
			t.kill(pod, nil)
			if res, err := t.exec(t.Context(), id, t.suite.Commands.Print("hello", 0), t.suite.Timing.Timeout); err == nil {
				t.Errorf("Exec in a container that has exited: %+v, no error", res)
			}
		},
	},
	{
		name:     "ExecObeysTimeoutAndContext",
		text:     "Exec returns an error when its timeout or its context ends the command.",
		contract: "Execer.Exec: until timeout or ctx ends it, which is an error",
		cause:    "the timeout is passed to the backend, which ignores it, or the partial output is returned as success",
		needs:    []string{"Execer", "Commands.Print", "Commands.Block"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			id := t.container(t.up(pod), "long").ID
			begun := time.Now()
			if res, err := t.exec(t.Context(), id, t.suite.Commands.Block, time.Second); err == nil {
				t.Errorf("Exec returned %+v and no error after its timeout", res)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if res, err := t.exec(ctx, id, t.suite.Commands.Block, 0); err == nil {
				t.Errorf("Exec returned %+v and no error after its context was done", res)
			}
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("two commands with timeouts of 1 s and 0.3 s took %v", took)
			}
		},
	},
	{
		name:     "ExecSeparatesStdoutAndStderr",
		text:     "The standard error of a command is in Stderr and not in Stdout; both are returned also if the command fails.",
		contract: "ExecResult",
		cause:    "the command gets a terminal, or both outputs are read into one",
		needs:    []string{"Execer", "Commands.Print", "Commands.PrintErr"},
		check: func(t *checkT) {
			id := t.running().ID
			for _, code := range []int32{0, 3} {
				res, err := t.exec(t.Context(), id, t.suite.Commands.PrintErr("oops", code), t.suite.Timing.Timeout)
				if err != nil || res.ExitCode != code || string(res.Stderr) != "oops" || len(res.Stdout) > 0 {
					t.Errorf("Exec of a command that prints oops to its standard error and exits with %d: stdout %q, stderr %q, %d, %v",
						code, res.Stdout, res.Stderr, res.ExitCode, err)
				}
			}
		},
	},
	{
		name:     "ExecReturnsDocumentedErrors",
		text:     "If the timeout or the context ended the command, the error is that of a context; for a container that does not exist it is ErrNotFound, or ctx's error if ctx is done.",
		contract: "Execer.Exec; errors of package runtime",
		cause:    "the backend's errors are returned unchanged",
		needs:    []string{"Execer", "Commands.Block"},
		check: func(t *checkT) {
			id := t.running().ID
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			defer cancel()
			if _, err := t.exec(ctx, id, t.suite.Commands.Block, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("the error of an Exec whose context was canceled is %v", err)
			}
			if _, err := t.exec(t.Context(), id, t.suite.Commands.Block, time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error of an Exec whose timeout expired is %v", err)
			}
			if _, err := t.exec(t.Context(), id+"-not", t.suite.Commands.Block, time.Second); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("the error of an Exec in a container that does not exist is %v", err)
			}
		},
	},
	{
		name:     "ExecsRunConcurrently",
		text:     "Commands in one container run concurrently, each with its own output, and do not affect the container.",
		contract: "package runtime, Concurrency; Execer.Exec",
		cause:    "a command replaces the container's main process, or outputs are mixed",
		needs:    []string{"Execer", "Commands.Print"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			want := t.up(pod)
			id := t.container(want, "long").ID
			var running sync.WaitGroup
			for i := range int32(4) {
				running.Go(func() {
					text := fmt.Sprint("hello ", i)
					res, err := t.exec(t.Context(), id, t.suite.Commands.Print(text, i), t.suite.Timing.Timeout)
					if err != nil || res.ExitCode != i || string(res.Stdout) != text {
						t.Errorf("Exec of a command that prints %q and exits with %d: %+v, %v", text, i, res, err)
					}
				})
			}
			running.Wait()
			if got := t.look(pod.UID); format(got) != format(want) {
				t.Errorf("the pod was\n%s\nand after some commands is\n%s", describe(want), describe(got))
			}
		},
	},
}

func (t *checkT) exec(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	return as[runtime.Execer](t).Exec(ctx, id, slices.Clone(cmd), timeout)
}

// running returns a container that runs until it is stopped.
func (t *checkT) running() *runtime.ContainerStatus {
	t.Helper()
	return t.container(t.up(t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))), "long")
}
