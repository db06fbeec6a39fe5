package prober_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// An execer is a runtime.Execer that is a func.
type execer func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error)

func (e execer) Exec(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	return e(ctx, id, cmd, timeout)
}

// command is the target of a probe that runs a command.
func command(words ...string) prober.Target {
	return prober.Target{
		Pod: &v1.Pod{}, Container: &v1.Container{Name: "web"}, ContainerID: "test://1", Timeout: 3 * time.Second,
		Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: words}}},
	}
}

func TestTheCommandIsExpandedOverLiterals(t *testing.T) { // prober-34 prober-35
	to := command("check", "$(PORT)", "$(NODE)", "$(UNSET)", "$$(PORT)")
	to.Container.Env = []v1.EnvVar{
		{Name: "PORT", Value: "80"},
		{Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
	}
	_, err := prober.Exec{Runtime: execer(func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
		assert.Equal(t, "test://1", id)
		assert.Equal(t, []string{"check", "80", "$(NODE)", "$(UNSET)", "$(PORT)"}, cmd)
		assert.Equal(t, 3*time.Second, timeout)
		return runtime.ExecResult{}, nil
	})}.Probe(t.Context(), to)
	require.NoError(t, err)
}

func TestOutcomeOfACommand(t *testing.T) {
	long := strings.Repeat("x", 10<<10-2)
	unavailable := fmt.Errorf("cri: exec: %w", errors.Join(runtime.ErrUnavailable, context.DeadlineExceeded))
	for name, c := range map[string]struct {
		ran  runtime.ExecResult
		err  error
		want prober.Outcome
		fail error
	}{
		"exit code 0 prober-36": {
			ran:  runtime.ExecResult{Stdout: []byte("fine\n"), Stderr: []byte("a warning\n")},
			want: prober.Outcome{Result: runtime.ProbeSuccess, Output: "fine\na warning\n"}},
		"another exit code prober-36": {
			ran:  runtime.ExecResult{Stdout: []byte("out\n"), Stderr: []byte("err\n"), ExitCode: 1},
			want: prober.Outcome{Result: runtime.ProbeFailure, Output: "out\nerr\n"}},
		"output of 10 KiB at most, both streams together prober-35": {
			ran:  runtime.ExecResult{Stdout: []byte(long), Stderr: []byte("oops"), ExitCode: 3},
			want: prober.Outcome{Result: runtime.ProbeFailure, Output: long + "oo"}},
		"out of time prober-37": {
			err:  fmt.Errorf("cri: exec: %w", context.DeadlineExceeded),
			want: prober.Outcome{Result: runtime.ProbeFailure, Output: `command timed out: "check it" timed out after 3s`}},
		"any other error is no result for the container prober-38": {err: runtime.ErrNotFound, fail: runtime.ErrNotFound},
		"nor does a runtime that is stuck prober-38":               {err: unavailable, fail: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			handler := prober.Exec{Runtime: execer(func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
				return c.ran, c.err
			})}
			got, err := handler.Probe(t.Context(), command("check", "it"))
			require.ErrorIs(t, err, c.fail)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestTheRuntimeTerminatesTheCommandInTime(t *testing.T) { // prober-35 prober-37
	synctest.Test(t, func(t *testing.T) {
		ended := false
		rt := new(runtimetest.Runtime)
		rt.Behave("web", fake.Behavior{Exec: func(ctx context.Context, _ []string, _ runtime.Streams) (int32, error) {
			<-ctx.Done()
			ended = true
			return 0, nil
		}})
		pod := &v1.Pod{}
		pod.UID, pod.Name, pod.Namespace = "uid", "web", "default"
		pod.Spec.Containers = []v1.Container{{Name: "web"}}
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		seen, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		to := command("sleep", "1000")
		to.ContainerID = seen.Container("web").ID

		begun := time.Now()
		out, err := prober.Exec{Runtime: rt}.Probe(t.Context(), to)
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: `command timed out: "sleep 1000" timed out after 3s`}, out)
		assert.Equal(t, 3*time.Second, time.Since(begun))
		assert.True(t, ended)

		// The agent stops; it is not the command's timeout.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = prober.Exec{Runtime: rt}.Probe(ctx, to)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A stuckExec never finishes a command in time; health is the health of the rest of
// the runtime, which may hang as well.
type stuckExec struct {
	health error
	hangs  bool
}

func (s stuckExec) Exec(ctx context.Context, _ string, _ []string, _ time.Duration) (runtime.ExecResult, error) {
	<-ctx.Done()
	return runtime.ExecResult{}, errors.Join(runtime.ErrUnavailable, ctx.Err())
}
func (s stuckExec) Check(ctx context.Context) (runtime.Health, error) {
	if s.hangs {
		<-ctx.Done()
		return runtime.Health{}, ctx.Err()
	}
	return runtime.Health{}, s.health
}

func TestACommandThatTheRuntimeDoesNotTerminate(t *testing.T) { // prober-37, prober-38
	synctest.Test(t, func(t *testing.T) {
		probe := func(rt runtime.Execer, words ...string) (prober.Outcome, error) {
			return prober.Handlers{Exec: prober.Exec{Runtime: rt}}.Probe(t.Context(), command(words...)) // as a Manager does
		}
		begun := time.Now()
		out, err := probe(stuckExec{}, "sh", "-c", "sleep 1000; true")
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: `command timed out: "sh -c sleep 1000; true" timed out after 3s`}, out)
		assert.Equal(t, 5*time.Second, time.Since(begun))

		_, err = probe(stuckExec{health: errors.New("down")}, "true")
		require.ErrorContains(t, err, "runtime does not respond: ")
		_, err = probe(execer(stuckExec{}.Exec), "true")
		require.ErrorContains(t, err, "runtime does not respond: ", "its health is unknown")

		begun = time.Now()
		_, err = probe(stuckExec{hangs: true}, "true")
		require.ErrorContains(t, err, "runtime does not respond: ", "nothing of it responds")
		assert.Equal(t, 3*7*time.Second, time.Since(begun), "three tries")
	})
}

func TestBadInputOfACommandIsNamed(t *testing.T) {
	failing := execer(func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
		t.Error("it runs")
		return runtime.ExecResult{}, nil
	})
	_, err := prober.Exec{Runtime: failing}.Probe(t.Context(), command())
	require.EqualError(t, err, "exec has no command")
	_, err = prober.Exec{Runtime: failing}.Probe(t.Context(), prober.Target{Probe: &v1.Probe{}})
	require.EqualError(t, err, "probe has no exec")
	_, err = prober.Exec{}.Probe(t.Context(), command("true"))
	require.ErrorIs(t, err, runtime.ErrUnsupported)
}
