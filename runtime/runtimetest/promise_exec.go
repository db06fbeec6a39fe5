package runtimetest

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// execPromises are those of [runtime.Execer].
var execPromises = []promise{
	{
		name:  "ExecTellsOutputAndCode",
		says:  "Exec runs a command in the container to its end; one that ran and failed is no error, its exit code is in the result.",
		where: "Execer.Exec, ExecResult",
		cause: "a non-zero exit code is returned as an error",
		needs: []string{"Execer", "Suite.Print", "Suite.Block"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			for _, code := range []int32{0, 3} {
				res, err := t.exec(t.Context(), id, t.suite.Print("hello", code), t.suite.Patience)
				if err != nil || res.ExitCode != code || string(res.Stdout) != "hello" {
					t.Errorf("Exec of a command that prints hello and exits with %d: %+v, %v", code, res, err)
				}
			}
			if res, err := t.exec(t.Context(), id+"-not", t.suite.Print("hello", 0), t.suite.Patience); err == nil {
				t.Errorf("Exec in a container that does not exist: %+v, no error", res)
			}
			t.kill(pod, nil)
			if res, err := t.exec(t.Context(), id, t.suite.Print("hello", 0), t.suite.Patience); err == nil {
				t.Errorf("Exec in a container that has exited: %+v, no error", res)
			}
		},
	},
	{
		name:  "ExecEndsInTime",
		says:  "When its timeout or its context ends a command, Exec returns an error.",
		where: "Execer.Exec: until timeout or ctx ends it, which is an error",
		cause: "the timeout is passed to the backend, which ignores it, or the output so far is returned as success",
		needs: []string{"Execer", "Suite.Print", "Suite.Block"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			begun := time.Now()
			if res, err := t.exec(t.Context(), id, t.suite.Block, time.Second); err == nil {
				t.Errorf("Exec beyond its timeout: %+v, no error", res)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if res, err := t.exec(ctx, id, t.suite.Block, 0); err == nil {
				t.Errorf("Exec beyond its context: %+v, no error", res)
			}
			if took := time.Since(begun); took > t.suite.Patience {
				t.Errorf("two commands of a second and less took %v", took)
			}
		},
	},
}

func (t *trial) exec(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	return t.rt.(runtime.Execer).Exec(ctx, id, slices.Clone(cmd), timeout)
}
