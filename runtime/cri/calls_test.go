package cri_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// called records the calls that Hooks.Called reports.
type called struct {
	mu   sync.Mutex
	list []cri.CallInfo
}

func (c *called) note(i cri.CallInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, i)
}

// operations returns the operations since the last call, in order.
func (c *called) operations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, i := range c.list {
		names = append(names, i.Operation)
	}
	c.list = nil
	return names
}

func TestEachCallIsReported(t *testing.T) { // rt-152
	f := newFake()
	f.has("img:1")
	var seen called
	rt, _ := f.engine(t, cri.Config{Hooks: cri.Hooks{Called: seen.note}})
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	first := seen.operations()
	for _, op := range []string{"list_podsandbox", "list_containers", "run_podsandbox", "podsandbox_status", "image_status", "create_container", "start_container"} {
		assert.Contains(t, first, op)
	}
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	assert.Contains(t, seen.operations(), "stop_container")

	boom := errors.New("boom")
	f.exec = func(context.Context, string, []string) error { return boom }
	f.holds("a", "s1", 0, 0, "web/0 running")
	_, err := rt.Exec(t.Context(), "fake://s1-web/0", []string{"x"}, time.Second)
	require.ErrorIs(t, err, boom)
	require.Len(t, seen.list, 1)
	assert.Equal(t, "exec_sync", seen.list[0].Operation)
	assert.ErrorIs(t, seen.list[0].Err, boom)
}

// A hanging runtime blocks in every call until the context is done, as gRPC does.
type hanging struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (hanging) Close(context.Context) error { return nil }
func (hanging) Status(ctx context.Context, _ bool) (*runtimeapi.StatusResponse, error) {
	return nil, hang(ctx)
}
func (hanging) ListPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return nil, hang(ctx)
}
func (hanging) ExecSync(ctx context.Context, _ string, _ []string, _ time.Duration) ([]byte, []byte, error) {
	return nil, nil, hang(ctx)
}
func (hanging) CheckpointContainer(ctx context.Context, _ *runtimeapi.CheckpointContainerRequest) error {
	return hang(ctx)
}
func (hanging) RunPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxConfig, _ string) (string, error) {
	return "", hang(ctx)
}

func TestACallThatHangsIsGivenUp(t *testing.T) {
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: hanging{}, Images: hanging{}})
	require.NoError(t, err)
	short, err := cri.New(cri.Config{Name: "fake", Runtime: hanging{}, Images: hanging{}, Calls: cri.CallConfig{Timeout: time.Second}})
	require.NoError(t, err)
	_, err = cri.New(cri.Config{Name: "fake", Runtime: hanging{}, Images: hanging{}, Calls: cri.CallConfig{Timeout: -1}})
	require.EqualError(t, err, "cri: Config.Calls.Timeout is negative: -1ns")
	for name, tc := range map[string]struct {
		rt    *cri.Runtime
		call  func(ctx context.Context, rt *cri.Runtime) error
		takes time.Duration
	}{
		"a status": {rt, func(ctx context.Context, rt *cri.Runtime) error {
			_, err := rt.Check(ctx)
			return err
		}, 2 * time.Minute},
		"a list": {short, func(ctx context.Context, rt *cri.Runtime) error {
			_, err := rt.Pods(ctx)
			return err
		}, time.Second},
		"a command has its own timeout": {rt, func(ctx context.Context, rt *cri.Runtime) error {
			_, err := rt.Exec(ctx, "x", []string{"x"}, 10*time.Second)
			return err
		}, 2*time.Minute + 10*time.Second},
		"a checkpoint has its own timeout": {short, func(ctx context.Context, rt *cri.Runtime) error {
			return rt.Checkpoint(ctx, "x", "/c.tar", 1500*time.Millisecond)
		}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := tc.call(t.Context(), tc.rt)
				require.ErrorIs(t, err, runtime.ErrUnavailable)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context is not done")
				assert.Equal(t, tc.takes, time.Since(begun))

				// The caller's context ends first, and its error is distinguishable.
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				begun = time.Now()
				err = tc.call(ctx, tc.rt)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, runtime.ErrUnavailable)
				assert.Equal(t, 300*time.Millisecond, time.Since(begun))
			})
		})
	}
}

// A pull, and a command without a timeout, have no deadline (rt-148).
func TestSomeCallsHaveNoDeadlineOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(ctx context.Context, _ string) error {
			_, has := ctx.Deadline()
			assert.False(t, has)
			<-time.After(time.Hour)
			return nil
		}
		f.exec = func(ctx context.Context, _ string, _ []string) error {
			_, has := ctx.Deadline()
			assert.False(t, has)
			return nil
		}
		rt, _ := f.engine(t, cri.Config{})
		syncs(t, rt, podOf(container("web")))
		assert.Equal(t, []string{"web"}, f.running())
		_, err := rt.Exec(t.Context(), "fake://"+f.newest("web").ID, []string{"x"}, 0)
		require.NoError(t, err)
	})
}

func TestErrorsHaveAClass(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		class error // nil: none
	}{
		"not found":          {status.Error(codes.NotFound, "no such container"), runtime.ErrNotFound},
		"unimplemented":      {status.Error(codes.Unimplemented, "unknown method"), runtime.ErrUnsupported},
		"unsupported":        {fmt.Errorf("here: %w", errors.ErrUnsupported), runtime.ErrUnsupported},
		"unavailable":        {status.Error(codes.Unavailable, "connection closed"), runtime.ErrUnavailable},
		"connection refused": {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), runtime.ErrUnavailable},
		"a failure":          {status.Error(codes.Unknown, "no space left on device"), nil},
		"a plain failure":    {errors.New("boom"), nil},
		"already classed":    {fmt.Errorf("mine: %w", runtime.ErrNotFound), runtime.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			rt, err := cri.New(cri.Config{Name: "fake", Runtime: failingRuntime{err: tc.err}, Images: hanging{}})
			require.NoError(t, err)
			err = rt.ReopenLog(t.Context(), "fake://c1")
			require.EqualError(t, err, "cri: reopen the log of container fake://c1: "+tc.err.Error(), "the runtime's message is kept")
			require.ErrorIs(t, err, tc.err)
			assert.Equal(t, status.Code(tc.err), status.Code(err), "the code is preserved")
			for _, class := range []error{runtime.ErrNotFound, runtime.ErrUnsupported, runtime.ErrUnavailable} {
				assert.Equal(t, class == tc.class, errors.Is(err, class), class)
			}
		})
	}
	assert.ErrorIs(t, runtime.ErrUnsupported, errors.ErrUnsupported)
}

// A failingRuntime fails ReopenContainerLog with err.
type failingRuntime struct {
	internalapi.RuntimeService
	err error
}

func (f failingRuntime) ReopenContainerLog(context.Context, string) error { return f.err }

func TestACommandThatTimesOut(t *testing.T) { // rt-149
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.holds("a", "s1", 0, 0, "web/0 running")
		rt, _ := f.engine(t, cri.Config{})
		f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
		_, err := rt.Exec(t.Context(), "fake://s1-web/0", []string{"sleep", "9"}, 3*time.Second)
		require.ErrorContains(t, err, `command timed out: ["sleep" "9"] did not end within 3s`)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// The error of a client of a socket.
		f.exec = func(context.Context, string, []string) error {
			return errors.New(`command timed out: "sleep 9" timed out after 3s`)
		}
		_, err = rt.Exec(t.Context(), "fake://s1-web/0", []string{"sleep", "9"}, 3*time.Second)
		require.EqualError(t, err, `command timed out: "sleep 9" timed out after 3s`)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// Its text is in the event of a failed probe (prober-30).
		f.exec = func(context.Context, string, []string) error {
			return status.Error(codes.Unknown, "failed to exec in container: no running task found")
		}
		_, err = rt.Exec(t.Context(), "fake://s1-web/0", []string{"sleep", "9"}, 3*time.Second)
		require.EqualError(t, err, "rpc error: code = Unknown desc = failed to exec in container: no running task found")
	})
}
