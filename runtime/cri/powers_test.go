package cri_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// An eventful runtime implements GetContainerEvents with stream.
type eventful struct {
	*fakeCRI
	stream func(ctx context.Context, events chan<- *runtimeapi.ContainerEventResponse) error
}

func (s eventful) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, _ func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return s.stream(ctx, events)
}

func TestWatchReportsThePodsOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := eventful{f, func(ctx context.Context, events chan<- *runtimeapi.ContainerEventResponse) error {
			for range 100 { // more than any buffer holds
				events <- &runtimeapi.ContainerEventResponse{PodSandboxStatus: &runtimeapi.PodSandboxStatus{
					Metadata: &runtimeapi.PodSandboxMetadata{Uid: "a"},
				}}
			}
			events <- new(runtimeapi.ContainerEventResponse)
			events <- &runtimeapi.ContainerEventResponse{ContainersStatuses: []*runtimeapi.ContainerStatus{
				{Labels: map[string]string{"io.kubernetes.pod.uid": "b"}},
			}}
			<-ctx.Done()
			events <- new(runtimeapi.ContainerEventResponse) // a late one finds a reader, too
			return ctx.Err()
		}}
		rt, err := cri.New(cri.Config{Name: "fake", Runtime: s, Images: f})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		seen := map[types.UID]int{}
		done := make(chan error)
		go func() { done <- rt.Watch(ctx, func(uid types.UID) { seen[uid]++ }) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, map[types.UID]int{"a": 100, "b": 1}, seen)
	})
}

func TestWatchReturnsTheErrorOfTheStream(t *testing.T) {
	f := newFake()
	for _, failure := range []error{status.Error(codes.Unimplemented, "unknown method"), nil} {
		s := eventful{f, func(context.Context, chan<- *runtimeapi.ContainerEventResponse) error { return failure }}
		rt, err := cri.New(cri.Config{Name: "fake", Runtime: s, Images: f})
		require.NoError(t, err)
		require.Error(t, rt.Watch(t.Context(), func(types.UID) {}))
	}
}

// exitError is an error with an exit code, as the services of the CRI return it.
type exitError struct{ code int }

func (e exitError) Error() string   { return "it failed" }
func (e exitError) ExitStatus() int { return e.code }

func TestExecDistinguishesAnExitFromAFailure(t *testing.T) {
	f := newFake()
	f.holds("a", "s1", 0, 0, "web/0 running")
	rt, _ := f.engine(t, cri.Config{})
	f.exec = func(context.Context, string, []string) error { return exitError{7} }
	res, err := rt.Exec(t.Context(), "fake://s1-web/0", []string{"x"}, time.Second)
	require.NoError(t, err)
	assert.EqualValues(t, 7, res.ExitCode)
	f.exec = func(context.Context, string, []string) error { return errors.New("command timed out") } // rt-149
	_, err = rt.Exec(t.Context(), "fake://s1-web/0", []string{"x"}, time.Second)
	require.ErrorContains(t, err, "command timed out")
}

// The CRI's timeout is in whole seconds, and 0 means no timeout.
func TestExecKeepsAFractionOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.holds("a", "s1", 0, 0, "web/0 running")
		rt, _ := f.engine(t, cri.Config{})
		f.exec = func(ctx context.Context, _ string, _ []string) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		_, err := rt.Exec(t.Context(), "fake://s1-web/0", []string{"x"}, 300*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 300*time.Millisecond, time.Since(begun))
	})
}

// reporting is a runtime with the given conditions.
type reporting struct {
	*fakeCRI
	conditions []*runtimeapi.RuntimeCondition
}

func (r reporting) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: r.conditions}}, nil
}

func TestCheckDistinguishesTheRuntimeFromItsNetwork(t *testing.T) {
	f := newFake()
	rt, err := cri.New(cri.Config{Name: "fake", Images: f, Runtime: reporting{f, []*runtimeapi.RuntimeCondition{
		{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Reason: "NoCNI", Message: "no network config"},
	}}})
	require.NoError(t, err)
	h, err := rt.Check(t.Context())
	require.NoError(t, err)
	assert.NoError(t, h.Runtime)
	assert.EqualError(t, h.Network, "NoCNI: no network config")
}

func TestGarbageOfARemovedPodGoesWithItsFiles(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	web := container("web")
	web.TerminationMessagePath = "/dev/termination-log"
	pod := podOf(web)
	syncs(t, rt, pod)
	policy := runtime.GCPolicy{MaxPerContainer: 1, Keep: func(uid types.UID) bool { return uid != pod.UID }}
	require.NoError(t, rt.CollectGarbage(t.Context(), policy))
	require.Equal(t, []string{"web"}, f.running(), "running containers are not garbage")

	logs, mounts := f.sandboxes()[0].Config.LogDirectory, f.newest("web").Config.Mounts
	require.DirExists(t, logs)
	require.FileExists(t, mounts[1].HostPath)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	require.NoError(t, rt.CollectGarbage(t.Context(), policy))
	assert.Empty(t, f.containers())
	assert.Empty(t, f.sandboxes())
	assert.NoDirExists(t, logs)
	assert.NoFileExists(t, mounts[0].HostPath)
	assert.NoFileExists(t, mounts[1].HostPath)
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	assert.Empty(t, pods)
}
