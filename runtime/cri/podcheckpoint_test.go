package cri_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// agents returns a function that opens engines one after the other on one machine.
func agents(t *testing.T, f *fakeCRI, cfg cri.Config) func() (*cri.Runtime, *events) {
	dir := t.TempDir()
	return func() (*cri.Runtime, *events) {
		seen := new(events)
		cfg.Name, cfg.Runtime, cfg.Images, cfg.Record = "fake", f, f, seen.record
		cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
		rt, err := cri.New(cfg)
		require.NoError(t, err)
		return rt, seen
	}
}

func TestAPostStartHookOutlivesTheAgent(t *testing.T) { // rt-104, lq-14
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
	pod := podOf(web)
	rt, _ := next()
	ctx, dies := context.WithCancel(t.Context())
	f.exec = func(context.Context, string, []string) error { dies(); return ctx.Err() }
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	require.ErrorIs(t, err, context.Canceled)

	rt, _ = next()
	starting := func() bool {
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		require.Len(t, st.Containers, 1)
		require.Equal(t, runtime.ContainerRunning, st.Containers[0].State)
		return st.Containers[0].Starting
	}
	require.True(t, starting())
	ran := 0
	f.exec = func(context.Context, string, []string) error { ran++; assert.True(t, starting()); return nil }
	for range 3 {
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		assert.Empty(t, res.Actions)
		require.False(t, starting())
	}
	rt, _ = next()
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.NoError(t, err)
	assert.Equal(t, 1, ran)
	assert.Equal(t, []string{"web"}, f.running())
}

func TestARuntimeThatGoesAwayUnderAPostStartHookIsNoFailureOfIt(t *testing.T) { // lq-14
	f := newFake()
	f.has("img:1")
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
	pod := podOf(web)
	rt, seen := agents(t, f, cri.Config{})()
	f.exec = func(context.Context, string, []string) error {
		return status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	for range 2 {
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorIs(t, err, runtime.ErrUnavailable)
	}
	ran := 0
	f.exec = func(context.Context, string, []string) error { ran++; return nil }
	for range 3 {
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
	}
	assert.Equal(t, 1, ran, "it is run again when the runtime is back")
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	require.Len(t, st.Containers, 1)
	assert.Equal(t, runtime.ContainerRunning, st.Containers[0].State, "it was not stopped")
	assert.NotContains(t, strings.Join(seen.take(), "\n"), "FailedPostStartHook")
}

func TestAPostStartHookThatFailsAfterARestartStopsItsContainer(t *testing.T) { // lq-14, rt-103
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
	pod := podOf(web)
	rt, _ := next()
	ctx, dies := context.WithCancel(t.Context())
	f.exec = func(context.Context, string, []string) error { dies(); return ctx.Err() }
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	require.Error(t, err)

	rt, seen := next()
	f.exec = func(context.Context, string, []string) error { return errors.New("exit 1") }
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	require.Len(t, res.Actions, 1)
	assert.Equal(t, "PostStartHookError", res.Actions[0].Reason)
	assert.Contains(t, seen.take(), "Warning FailedPostStartHook spec.containers{web}: PostStartHook failed")
	assert.Empty(t, f.running())
}

func TestRestartCountsContinueWithoutContainers(t *testing.T) {
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	pod := podOf(container("web"))
	rt, _ := next()
	up(t, f, rt, pod)
	f.exits("web", 1)
	syncs(t, rt, pod)
	require.EqualValues(t, 1, f.newest("web").Config.Metadata.Attempt)

	logs := f.sandboxes()[0].Config.LogDirectory
	f.forgets() // as an operator would with crictl, with the logs
	require.NoError(t, os.RemoveAll(logs))
	rt, _ = next()
	syncs(t, rt, pod)
	assert.EqualValues(t, 2, f.newest("web").Config.Metadata.Attempt)
	assert.Equal(t, "2", f.newest("web").Config.Annotations["io.kubernetes.container.restartCount"])
	assert.EqualValues(t, 1, f.sandboxes()[0].Config.Metadata.Attempt)
}

func TestATerminatedContainerThatIsRemovedIsNotRestarted(t *testing.T) { // rt-42, st-50
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			next := agents(t, f, cri.Config{})
			pod := podOf(container("done"), container("goes-on"))
			pod.Spec.RestartPolicy = policy
			rt, _ := next()
			up(t, f, rt, pod)
			f.exits("done", 0)
			syncs(t, rt, pod)
			f.forgets() // as an operator would with crictl
			rt, _ = next()
			syncs(t, rt, pod)
			assert.Nil(t, f.newest("done"))
			if policy == v1.RestartPolicyNever {
				assert.Nil(t, f.newest("goes-on"), "the pod has run, and does not run twice (rt-41)")
				return
			}
			assert.NotNil(t, f.newest("goes-on"), "its exit was not observed")
		})
	}
}

func TestAnEphemeralContainerThatIsRemovedDoesNotRunAgain(t *testing.T) { // rt-45, k/k 124176
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	pod := podOf(container("web"))
	rt, _ := next()
	up(t, f, rt, pod)
	pod = pod.DeepCopy()
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}}
	syncs(t, rt, pod)
	f.exits("debug", 1)
	require.NoError(t, f.RemoveContainer(t.Context(), f.newest("debug").ID))
	rt, _ = next()
	syncs(t, rt, pod)
	assert.Nil(t, f.newest("debug"))
}

func TestAllocatedResourcesAreExact(t *testing.T) { // rt-13, al-1, al-21
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	web := container("web")
	web.Resources = v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("333m"), v1.ResourceMemory: resource.MustParse("7Mi"), "example.com/gpu": resource.MustParse("1")},
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")},
	}
	pod := podOf(web)
	rt, _ := next()
	up(t, f, rt, pod)
	rt, _ = next()
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	got := st.Containers[0].Resources
	require.NotNil(t, got)
	assert.True(t, got.Requests.Cpu().Equal(resource.MustParse("333m")))
	assert.True(t, got.Requests.Memory().Equal(resource.MustParse("7Mi")))
	assert.True(t, got.Limits.Cpu().Equal(resource.MustParse("1500m")))
	assert.Len(t, got.Requests, 2, "resources that cannot be resized are not stored")
}

func TestACorruptCheckpointIsIgnored(t *testing.T) {
	f := newFake()
	f.has("img:1")
	dir := t.TempDir()
	pod := podOf(container("web"))
	path := filepath.Join(dir, "root", "pods", string(pod.UID), "runtime.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(`{"checksum":"0","data":{"restarts":{"web":99}}}`), 0o600))
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
	require.NoError(t, err)
	syncs(t, rt, pod)
	assert.EqualValues(t, 0, f.newest("web").Config.Metadata.Attempt)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	f.forgets()
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }}))
	assert.NoDirExists(t, filepath.Dir(path))
}
