package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// streamPromises are those of [runtime.StreamExecer], [runtime.Attacher],
// [runtime.PortForwarder] and [runtime.StreamServer].
var streamPromises = []promise{
	{
		name:  "StreamExecStreams",
		says:  "StreamExec runs a command in the container to its end, writes what it prints to the caller's Stdout, and returns its exit code.",
		where: "StreamExecer.StreamExec",
		cause: "the exit code that comes after the streams is not read",
		needs: []string{"StreamExecer", "Suite.Print", "Suite.Block"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			rt := t.rt.(runtime.StreamExecer)
			for _, want := range []int32{0, 3} {
				var out bytes.Buffer
				code, err := rt.StreamExec(t.Context(), id, t.suite.Print("hello", want), runtime.Streams{Stdout: &out})
				if errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("StreamExec is not supported (its caller would do without): %v", err)
				}
				if err != nil || code != want || out.String() != "hello" {
					t.Errorf("StreamExec of a command that prints hello and exits with %d: %q, %d, %v", want, out.String(), code, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if code, err := rt.StreamExec(ctx, id, t.suite.Block, runtime.Streams{}); err == nil {
				t.Errorf("StreamExec beyond its context: %d, no error", code)
			}
			if took := time.Since(begun); took > t.suite.Patience {
				t.Errorf("a command whose context ended after 0.3 s took %v", took)
			}
			if code, err := rt.StreamExec(t.Context(), id+"-not", t.suite.Print("hello", 0), runtime.Streams{}); err == nil {
				t.Errorf("StreamExec in a container that does not exist: %d, no error", code)
			}
		},
	},
}
