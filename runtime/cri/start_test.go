package cri_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// Containers are started sequentially: a pull and a postStart hook delay the containers
// after them (rt-70).
func TestStartsAreOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(context.Context, string) error { time.Sleep(10 * time.Second); return nil }
		f.exec = func(context.Context, string, []string) error { time.Sleep(5 * time.Second); return nil }
		rt, _ := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("hello")}
		pod := podOf(web, container("db"), container("log"))
		begun := time.Now()
		syncs(t, rt, pod)
		for name, want := range map[string]time.Duration{"web": 10 * time.Second, "db": 15 * time.Second, "log": 15 * time.Second} {
			assert.Equal(t, want, f.newest(name).Started.Sub(begun), name)
		}
	})
}

// The addresses in a container's environment are those of the sandbox that was
// created for it, or of the existing one (rt-72).
func TestContainersHaveTheAddressesOfTheirSandbox(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	web := container("web")
	for _, field := range []string{"status.podIP", "status.podIPs"} {
		web.Env = append(web.Env, v1.EnvVar{Name: field, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: field}}})
	}
	pod := podOf(web)
	for _, when := range []string{"rt-72 a new sandbox", "rt-72 one that was there"} {
		syncs(t, rt, pod)
		got := map[string]string{}
		for _, e := range f.newest("web").Config.Envs {
			got[e.Key] = string(e.Value)
		}
		assert.Equal(t, "10.0.0.1", got["status.podIP"], when)
		assert.Equal(t, "10.0.0.1,fd00::7", got["status.podIPs"], when)
		f.exits("web", 1)
	}
	assert.Len(t, f.sandboxes(), 1)
	assert.Len(t, f.containers(), 1+1)
}

// Log directories are created before the runtime writes to them.
func TestLogDirectoriesAreMadeFirst(t *testing.T) { // rt-17, rt-85
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	checked := 0
	f.before = func(op, _ string) error {
		of := map[string]string{
			"RunPodSandbox": dir + "/logs/prod_web_u-1", "CreateContainer": dir + "/logs/prod_web_u-1/web",
		}[op]
		if of == "" {
			return nil
		}
		checked++
		info, err := os.Stat(of)
		require.NoError(t, err, op)
		if goruntime.GOOS != "windows" {
			assert.Equal(t, os.FileMode(0o755), info.Mode().Perm(), op)
		}
		return nil
	}
	syncs(t, rt, podOf(container("web")))
	assert.Equal(t, 2, checked)
	assert.Equal(t, filepath.Clean(dir+"/logs/prod_web_u-1"), filepath.Clean(f.sandboxes()[0].Config.LogDirectory))
	assert.Equal(t, "web/0.log", filepath.ToSlash(f.newest("web").Config.LogPath))
	assert.NoDirExists(t, dir+"/links", "no link to a log that does not exist (rt-86)")
}

// A container starts even if its termination message file cannot be created (rt-124).
func TestAContainerRunsWithoutAFileForItsMessage(t *testing.T) {
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	web := container("web")
	web.TerminationMessagePath = "/dev/termination-log"
	pod := podOf(web)
	require.NoError(t, os.MkdirAll(dir+"/root/pods/u-1", 0o755))
	require.NoError(t, os.WriteFile(dir+"/root/pods/u-1/containers", nil, 0o644), "a file instead of the directory")
	syncs(t, rt, pod)
	assert.Equal(t, []string{"web"}, f.running())
	for _, m := range f.newest("web").Config.Mounts {
		assert.NotEqual(t, "/dev/termination-log", m.ContainerPath)
	}

	require.NoError(t, os.Remove(dir+"/root/pods/u-1/containers"))
	f.exits("web", 1)
	syncs(t, rt, pod)
	var paths []string
	for _, m := range f.newest("web").Config.Mounts {
		paths = append(paths, m.ContainerPath)
	}
	assert.Contains(t, paths, "/dev/termination-log")
}

// After a failed start, the same instance is started again and the attempt does not
// change. The kubelet creates another one (rt-82).
func TestAnInstanceThatDidNotStartIsStartedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		attempts  []uint32
		instances int
	}{
		"rt-52 rt-82 lq-13 resumed": {[]uint32{0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			rt, _ := f.engine(t, cri.Config{})
			pod := podOf(container("web"))
			f.before = failing(1, "StartContainer", errors.New("no such device"))
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			syncs(t, rt, pod)
			var attempts []uint32
			for _, c := range f.containers() {
				attempts = append(attempts, c.Config.Metadata.Attempt)
			}
			assert.Equal(t, tc.attempts, attempts)
			assert.Equal(t, []string{"web"}, f.running())
			assert.Equal(t, 1, f.atOnce["web"])
		})
	}
}

// execs is a fakeCRI that records the timeouts of commands.
type execs struct {
	*fakeCRI
	timeouts []time.Duration
	cmds     [][]string
}

func (e *execs) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, []byte, error) {
	e.timeouts, e.cmds = append(e.timeouts, timeout), append(e.cmds, cmd)
	_, _, err := e.fakeCRI.ExecSync(ctx, id, cmd, timeout)
	return []byte("a secret on stdout "), []byte("and stderr"), err
}

// A hook's command has no timeout of its own; its output goes to the log and the
// message, but not to an event (rt-99).
func TestTheCommandOfAHook(t *testing.T) {
	f := newFake()
	f.has("img:1")
	e := &execs{fakeCRI: f}
	seen := new(events)
	rt := newRuntime(t, cri.Config{Name: "fake", Runtime: e, Images: f, Record: seen.record})
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello", "$(A)"}}}}
	f.exec = func(context.Context, string, []string) error { return errors.New("exit status 3") }
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(web)})
	require.Error(t, err)
	assert.Equal(t, []time.Duration{0}, e.timeouts)
	assert.Equal(t, [][]string{{"hello", "$(A)"}}, e.cmds)
	assert.Equal(t, `exec "hello $(A)": exit status 3, output: "a secret on stdout and stderr"`, res.Actions[1].Message)
	for _, line := range seen.take() {
		assert.NotContains(t, line, "secret")
	}
}

func TestHooksThatSleep(t *testing.T) { // rt-102
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		var hooks []cri.HookInfo
		rt, seen := f.engine(t, cri.Config{Hooks: cri.Hooks{Hooked: func(i cri.HookInfo) { hooks = append(hooks, i) }}})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 40}}}
		web.Lifecycle.PostStart = &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 7}}
		pod := podOf(web)
		begun := time.Now()
		syncs(t, rt, pod)
		assert.Equal(t, 7*time.Second, time.Since(begun))
		require.Len(t, hooks, 1)
		require.NoError(t, hooks[0].Err)

		seen.take()
		begun = time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		assert.Equal(t, 30*time.Second, time.Since(begun))
		require.Len(t, hooks, 2)
		require.ErrorIs(t, hooks[1].Err, context.DeadlineExceeded, "the hook's error")
		assert.Equal(t, 30*time.Second, hooks[1].Duration)
		assert.Equal(t, []string{"Normal Killing spec.containers{web}: Stopping container web"}, seen.take())
	})
}

// A hook of an unknown type fails as any other does (rt-98).
func TestAHookOfAnUnknownTypeFails(t *testing.T) {
	for name, handler := range map[string]*v1.LifecycleHandler{
		"rt-98 none":      {},
		"rt-98 tcpSocket": {TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			rt, _ := f.engine(t, cri.Config{})
			web := container("web")
			web.Lifecycle = &v1.Lifecycle{PostStart: handler}
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(web)})
			require.Error(t, err)
			assert.Equal(t, "PostStartHookError", res.Actions[1].Reason)
			assert.Contains(t, res.Actions[1].Message, "invalid handler: ")
			assert.Empty(t, f.running())
		})
	}
}

// A request to a server without TLS is repeated over HTTP, with an event (rt-100).
func TestAHookThatFallsBackToHTTPIsReported(t *testing.T) {
	asked := 0
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		assert.Empty(t, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError) // rt-101: no failure
	}))
	defer plain.Close()
	u, err := url.Parse(plain.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{
		Host: "127.0.0.1", Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTPS,
		HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "secret"}},
	}}}
	f := newFake()
	f.has("img:1")
	rt, seen := f.engine(t, cri.Config{})
	syncs(t, rt, podOf(web))
	assert.Equal(t, 1, asked)
	assert.Equal(t, "Warning LifecycleHTTPFallback spec.containers{web}: "+
		"request to HTTPS lifecycle hook of container web got HTTP response, retry with HTTP succeeded", seen.take()[3])
}

// While a postStart hook hangs, the container is reported as running, with the pod's
// addresses: only the steps after the hook wait.
func TestAPodIsReportedAsRunningWhileItsHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
		rt, _ := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("hang")}
		pod := podOf(web)
		ctx, deleted := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
			done <- err
		}()
		time.Sleep(time.Hour)
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		assert.Equal(t, runtime.ContainerRunning, st.Container("web").State)
		assert.Equal(t, []string{"10.0.0.1", "fd00::7"}, st.IPs)
		deleted()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Equal(t, []string{"web"}, f.running(), "the kill stops the container")
	})
}

// A postStart hook may have a deadline of its own. A hook that exceeds it has
// failed like any other, and the sync continues.
func TestAPostStartHookMayHaveADeadline(t *testing.T) {
	for name, hook := range map[string]*v1.LifecycleHandler{
		"a command": execHook("hang"),
		"a sleep":   {Sleep: &v1.SleepAction{Seconds: 3600}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.has("img:1")
				f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
				rt, seen := f.engine(t, cri.Config{Containers: cri.ContainerConfig{PostStartTimeout: 20 * time.Second}})
				web := container("web")
				web.Lifecycle = &v1.Lifecycle{PostStart: hook}
				begun := time.Now()
				res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(web, container("db"))})
				require.Error(t, err)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the sync was not canceled")
				assert.Equal(t, 20*time.Second, time.Since(begun))
				assert.Equal(t, "PostStartHookError", res.Actions[1].Reason)
				assert.Contains(t, res.Actions[1].Message, "the hook timed out after 20s: ")
				assert.Equal(t, []string{"db"}, f.running())
				assert.Contains(t, seen.take(), "Warning FailedPostStartHook spec.containers{web}: PostStartHook failed")
			})
		})
	}
}
