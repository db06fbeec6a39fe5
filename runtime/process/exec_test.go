//go:build linux || darwin

package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

func TestExecRunsInTheContainersEnvironmentAndDirectory(t *testing.T) {
	n := newNode(t)
	cfg := sh("app", "sleep 1000")
	cfg.WorkingDir = "/"
	cfg.Envs = []*runtimeapi.KeyValue{{Key: "COLOUR", Value: []byte("red")}}
	id := n.start(n.sandbox("pod"), cfg)

	out, errOut, err := n.ExecSync(t.Context(), id, []string{"sh", "-c", "pwd; echo $COLOUR; echo oops >&2"}, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, "/\nred\n", string(out))
	assert.Equal(t, "oops\n", string(errOut))

	out, _, err = n.ExecSync(t.Context(), id, []string{"sh", "-c", "echo partial; exit 42"}, 0)
	code, ok := errors.AsType[utilexec.CodeExitError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 42, code.ExitStatus())
	assert.Equal(t, "partial\n", string(out))

	_, _, err = n.ExecSync(t.Context(), id, []string{"sh", "-c", "kill -9 $$"}, 0)
	code, ok = errors.AsType[utilexec.CodeExitError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 137, code.ExitStatus())

	_, _, err = n.ExecSync(t.Context(), id, []string{"not-there"}, 0)
	require.ErrorContains(t, err, `"not-there": not found in PATH`)
	_, _, err = n.ExecSync(t.Context(), id, nil, 0)
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	_, _, err = n.ExecSync(t.Context(), "absent", []string{"true"}, 0)
	assert.Equal(t, codes.NotFound, status.Code(err))
}

func TestExecIsKilledWithItsChildrenAfterItsTimeout(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	begin := time.Now()
	_, _, err := n.ExecSync(t.Context(), id, []string{"sh", "-c", "sleep 1000 & sleep 1000"}, 50*time.Millisecond)
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	assert.Less(t, time.Since(begin), patience)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, _, err = n.ExecSync(ctx, id, []string{"sleep", "1000"}, 0)
	assert.Equal(t, codes.Canceled, status.Code(err), "%v", err)
}

func TestExecDoesNotWaitForProcessesThatItLeavesBehind(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	out, _, err := n.ExecSync(t.Context(), id, []string{"sh", "-c", "sleep 1000 & echo $!"}, time.Minute)
	require.NoError(t, err)
	assert.NotEmpty(t, strings.TrimSpace(string(out)))
}

func TestExecEndsWithItsContainer(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	done := make(chan error, 1)
	go func() {
		_, _, err := n.ExecSync(t.Context(), id, []string{"sleep", "1000"}, 0)
		done <- err
	}()
	<-time.After(50 * time.Millisecond)
	require.NoError(t, n.StopContainer(t.Context(), id, 0))
	assert.Equal(t, codes.FailedPrecondition, status.Code(<-done))
	_, _, err := n.ExecSync(t.Context(), id, []string{"true"}, 0)
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
}
