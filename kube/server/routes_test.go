package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// web is a pod of one container.
var web = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "a1"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
}

// running returns a runtime in which web runs.
func running(t *testing.T) *runtimetest.Runtime {
	t.Helper()
	rt := new(runtimetest.Runtime)
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: web})
	require.NoError(t, err)
	return rt
}

// sv-6: a disabled handler responds with the kubelet's message.
func TestDisabledHandlersRespondWithTheReason(t *testing.T) {
	without := func(change func(*server.Debugging)) *server.Server {
		return newServer(t, func(c *server.Config) {
			c.Node.Logs = os.DirFS(t.TempDir())
			c.Debugging.SetVerbosity = func(int) {}
			change(&c.Debugging)
		})
	}
	off := without(func(d *server.Debugging) { d.Handlers = false })
	for _, path := range []string{"/run/a/b/c", "/exec/a/b/c", "/attach/a/b/c", "/portForward/a/b", "/containerLogs/a/b/c", "/runningpods/", "/debug/pprof/", "/logs/", "/logs"} {
		for _, h := range []http.Handler{off, newServer(t, nil).ReadOnly()} { // sv-6, and 10255
			w := ask(h, "GET", path, "")
			assert.Equal(t, 405, w.Code, path)
			assert.Equal(t, "Debug endpoints are disabled.", w.Body.String(), path)
		}
	}
	assert.Equal(t, 200, ask(off, "GET", "/pods", "").Code)

	for path, c := range map[string]struct {
		off  func(*server.Debugging)
		body string
	}{
		"/logs/":               {func(d *server.Debugging) { d.SystemLogs = false }, "logs endpoint is disabled."},
		"/debug/pprof/cmdline": {func(d *server.Debugging) { d.Profiling = false }, "profiling endpoint is disabled."},
		"/debug/flags/v":       {func(d *server.Debugging) { d.Flags = false }, "flags endpoint is disabled."},
	} {
		w := ask(without(c.off), "GET", path, "")
		assert.Equal(t, 405, w.Code, path)
		assert.Equal(t, c.body, w.Body.String(), path)
		w = ask(without(func(*server.Debugging) {}), "GET", path, "")
		assert.NotEqual(t, c.body, w.Body.String(), path)
	}
	w := ask(without(func(d *server.Debugging) { d.NodeLogQuery = false }), "GET", "/logs/?query=kubelet", "")
	assert.Equal(t, 405, w.Code)
}

// sv-3: ping, log and further checks; a failing one causes a 500 with the list.
func TestHealthz(t *testing.T) {
	var sick error
	s := newServer(t, func(c *server.Config) {
		c.Node.Checks = []server.Check{{Name: "syncloop", Check: func() error { return sick }}}
	})
	for _, h := range []http.Handler{s, s.ReadOnly(), s.Healthz()} {
		for _, method := range []string{"GET", "POST"} { // any
			for _, path := range []string{"/healthz", "/healthz/", "/healthz/ping", "/healthz/log", "/healthz/syncloop"} {
				w := ask(h, method, path, "")
				assert.Equal(t, 200, w.Code, path)
				assert.Equal(t, "ok", w.Body.String(), path)
			}
		}
		assert.Equal(t, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n", ask(h, "GET", "/healthz?verbose", "").Body.String())
		assert.Equal(t, 404, ask(h, "GET", "/healthz/other", "").Code)
		sick = errors.New("sync Loop took longer than expected")
		w := ask(h, "GET", "/healthz", "")
		assert.Equal(t, 500, w.Code)
		assert.Equal(t, "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n", w.Body.String())
		w = ask(h, "GET", "/healthz/syncloop", "")
		assert.Equal(t, 500, w.Code)
		assert.Equal(t, "internal server error: sync Loop took longer than expected\n", w.Body.String())
		assert.Equal(t, 200, ask(h, "GET", "/healthz?exclude=syncloop", "").Code)
		sick = nil
	}
	assert.Equal(t, 404, ask(s.Healthz(), "GET", "/pods", "").Code, "10248 has nothing else")
}

func TestPodsAndRunningPods(t *testing.T) {
	other := web.DeepCopy()
	other.Name, other.UID = "other", "a2"
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{web, other}, running(t) })
	var list v1.PodList
	for _, h := range []http.Handler{s, s.ReadOnly()} {
		for _, path := range []string{"/pods", "/pods/"} {
			w := ask(h, "GET", path, "")
			assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
			assert.Equal(t, "v1/PodList", list.APIVersion+"/"+list.Kind)
			assert.Equal(t, []v1.Pod{*web, *other}, list.Items)
		}
		assert.Equal(t, 405, ask(h, "POST", "/pods", "").Code)
	}
	list = v1.PodList{}
	require.NoError(t, json.Unmarshal(ask(s, "GET", "/runningpods/", "").Body.Bytes(), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, "ns/web a1 nginx nginx:1", list.Items[0].Namespace+"/"+list.Items[0].Name+" "+string(list.Items[0].UID)+" "+
		list.Items[0].Spec.Containers[0].Name+" "+list.Items[0].Spec.Containers[0].Image)
	assert.Equal(t, 404, ask(newServer(t, nil), "GET", "/runningpods", "").Code, "there is no runtime")
}

// usage implements server.Stats with one function.
type usage func(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)

func (u usage) Summary(ctx context.Context, _ bool) (*statsapi.Summary, error) { return u(ctx, false) }
func (u usage) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error)    { return u(ctx, true) }

// st-3, st-15.
func TestStats(t *testing.T) {
	var err error
	s := newServer(t, func(c *server.Config) {
		c.Node.Stats = usage(func(_ context.Context, only bool) (*statsapi.Summary, error) {
			if err != nil {
				return nil, err
			}
			name := map[bool]string{true: "only", false: "all"}[only]
			return &statsapi.Summary{Node: statsapi.NodeStats{NodeName: name}}, nil
		})
	})
	for path, want := range map[string]string{
		"GET /stats/summary": "all", "GET /stats/summary?only_cpu_and_memory=true": "only", "GET /stats/summary?only_cpu_and_memory=false": "all",
		"POST /stats/summary": "all", "POST /stats/summary?only_cpu_and_memory=true": "only",
	} {
		method, path, _ := strings.Cut(path, " ")
		for _, h := range []http.Handler{s, s.ReadOnly()} {
			assert.Contains(t, ask(h, method, path, "").Body.String(), `"nodeName":"`+want+`"`, path)
		}
	}
	assert.Contains(t, ask(s, "POST", "/stats/summary", "only_cpu_and_memory=true", "Content-Type: application/x-www-form-urlencoded").Body.String(), "only")
	err = errors.New("the runtime is away")
	w := ask(s, "GET", "/stats/summary", "")
	assert.Equal(t, 500, w.Code)
	assert.Equal(t, "Internal Error: the runtime is away\n", w.Body.String())
	assert.Equal(t, 404, ask(newServer(t, nil), "GET", "/stats/summary", "").Code)
}

// The read-only port requires no authentication.
func TestFormsAreNotStoredOnDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := newServer(t, func(c *server.Config) {
		c.Node.Stats = usage(func(context.Context, bool) (*statsapi.Summary, error) {
			left, err := os.ReadDir(os.TempDir())
			assert.Empty(t, left)
			return &statsapi.Summary{}, err
		})
	})
	file := "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + strings.Repeat("x", 48<<20) + "\r\n--x--\r\n"
	assert.Equal(t, 200, ask(s.ReadOnly(), "POST", "/stats/summary", file, "Content-Type: multipart/form-data; boundary=x").Code)
	form := "a=" + strings.Repeat("x", 2<<20)
	assert.Equal(t, 400, ask(s.ReadOnly(), "POST", "/stats/summary", form, "Content-Type: application/x-www-form-urlencoded").Code)
}

func TestConfigzReturnsTheConfiguration(t *testing.T) {
	s := newServer(t, func(c *server.Config) {
		c.Node.Configz = map[string]any{"kubeletconfig": map[string]int{"maxPods": 110}}
	})
	assert.JSONEq(t, `{"kubeletconfig":{"maxPods":110}}`, ask(s, "GET", "/configz", "").Body.String())
	assert.JSONEq(t, `{}`, ask(newServer(t, nil), "GET", "/configz", "").Body.String())
	assert.Equal(t, 404, ask(s.ReadOnly(), "GET", "/configz", "").Code)
}

func TestProfilesAndTheLevelOfTheLog(t *testing.T) {
	level := -1
	s := newServer(t, func(c *server.Config) { c.Debugging.SetVerbosity = func(l int) { level = l } })
	assert.Contains(t, ask(s, "GET", "/debug/pprof/", "").Body.String(), "goroutine")
	assert.Equal(t, 200, ask(s, "GET", "/debug/pprof/goroutine?debug=1", "").Code)
	w := ask(s, "PUT", "/debug/flags/v", "4\n")
	assert.Equal(t, "successfully set klog.logging.verbosity to 4", w.Body.String())
	assert.Equal(t, 4, level)
	for _, bad := range []string{"", "x", "-1", strings.Repeat("1", 100)} {
		assert.Equal(t, 400, ask(s, "PUT", "/debug/flags/v", bad).Code, bad)
	}
	assert.Equal(t, 405, ask(s, "GET", "/debug/flags/v", "").Code)
}

// checkpointing is a runtime that can.
type checkpointing struct {
	*runtimetest.Runtime
	err     error
	timeout time.Duration
}

func (c *checkpointing) Checkpoint(_ context.Context, _, location string, timeout time.Duration) error {
	c.timeout = timeout
	if c.err != nil {
		return c.err
	}
	return os.WriteFile(location, nil, 0o600)
}

// sv-11.
func TestCheckpoint(t *testing.T) {
	rt := &checkpointing{Runtime: running(t)}
	dir := filepath.Join(t.TempDir(), "checkpoints")
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime, c.Containers.CheckpointDir = pods{web}, rt, dir })
	w := ask(s, "POST", "/checkpoint/ns/web/nginx?timeout=7", "")
	assert.Equal(t, 200, w.Code)
	var got struct{ Items []string }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Len(t, got.Items, 1)
	assert.FileExists(t, got.Items[0])
	at, ok := strings.CutPrefix(got.Items[0], filepath.Join(dir, "checkpoint-web_ns-nginx-"))
	assert.True(t, ok, got.Items[0])
	_, err := time.Parse(time.RFC3339, strings.TrimSuffix(at, ".tar"))
	assert.NoError(t, err)
	assert.Equal(t, 7*time.Second, rt.timeout)

	for path, body := range map[string]string{
		"/checkpoint/ns/other/nginx":           "pod does not exist\n",
		"/checkpoint/ns/web/other":             "container other does not exist\n",
		"/checkpoint/ns/web/nginx?timeout=x":   "invalid timeout \"x\": want a number of seconds\n",
		"/checkpoint/ns/web/nginx?timeout=-1":  "invalid timeout \"-1\": want a number of seconds\n",
		"/checkpoint/ns/web/nginx?timeout=1e9": "invalid timeout \"1e9\": want a number of seconds\n",
	} {
		w := ask(s, "POST", path, "")
		assert.Equal(t, body, w.Body.String(), path)
		assert.Equal(t, 404, w.Code)
	}
	rt.err = errors.New("no room")
	w = ask(s, "POST", "/checkpoint/ns/web/nginx", "")
	assert.Equal(t, 500, w.Code)
	assert.Equal(t, "checkpointing of ns/web/nginx failed (no room)\n", w.Body.String())
	rt.err = runtime.ErrUnsupported
	assert.Equal(t, 404, ask(s, "POST", "/checkpoint/ns/web/nginx", "").Code)
	assert.Equal(t, 405, ask(s, "GET", "/checkpoint/ns/web/nginx", "").Code)
	without := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{web}, running(t) })
	assert.Equal(t, 404, ask(without, "POST", "/checkpoint/ns/web/nginx", "").Code)
}

// sv-12: requests as reported to metrics.
func TestHooksReportEachRequest(t *testing.T) {
	var started, finished []server.RequestInfo
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = named{}, may{"reader": {"get nodes/proxy", "get nodes/metrics"}}
		c.Node.Metrics = map[string]http.Handler{"/metrics": http.NotFoundHandler(), "/metrics/cadvisor": http.NotFoundHandler()}
		c.Hooks = server.Hooks{
			Started: func(i server.RequestInfo) { started = append(started, i) },
			Request: func(i server.RequestInfo) { finished = append(finished, i) },
		}
	})
	for _, c := range []struct {
		method, path, user string
		want               server.RequestInfo
	}{
		{"GET", "/pods", "reader", server.RequestInfo{Method: "GET", Path: "pods", ServerType: "readwrite", Code: 200}},
		{"GET", "/pods", "", server.RequestInfo{Method: "GET", Path: "pods", ServerType: "readwrite", Code: 401}},
		{"GET", "/metrics", "reader", server.RequestInfo{Method: "GET", Path: "metrics", ServerType: "readwrite", Code: 404}},
		{"GET", "/metrics/cadvisor", "reader", server.RequestInfo{Method: "GET", Path: "metrics/cadvisor", ServerType: "readwrite", Code: 404}},
		{"GET", "/metrics/made-up", "reader", server.RequestInfo{Method: "GET", Path: "other", ServerType: "readwrite", Code: 404}},
		{"GET", "/made-up", "reader", server.RequestInfo{Method: "GET", Path: "other", ServerType: "readwrite", Code: 404}},
		{"PATCH", "/pods", "reader", server.RequestInfo{Method: "other", Path: "pods", ServerType: "readwrite", Code: 403}},
		{"MADEUP", "/pods", "reader", server.RequestInfo{Method: "other", Path: "pods", ServerType: "readwrite", Code: 405}},
		{"POST", "/exec/a/b/c", "reader", server.RequestInfo{Method: "POST", Path: "exec", ServerType: "readwrite", LongRunning: true, Code: 403}},
		{"POST", "/attach/a/b/c", "reader", server.RequestInfo{Method: "POST", Path: "attach", ServerType: "readwrite", LongRunning: true, Code: 403}},
		{"POST", "/portForward/a/b", "reader", server.RequestInfo{Method: "POST", Path: "portForward", ServerType: "readwrite", LongRunning: true, Code: 403}},
		{"GET", "/debug/none", "reader", server.RequestInfo{Method: "GET", Path: "debug", ServerType: "readwrite", LongRunning: true, Code: 404}},
	} {
		started, finished = nil, nil
		ask(s, c.method, c.path, "", "User: "+c.user)
		require.Len(t, finished, 1)
		require.Len(t, started, 1)
		finished[0].Seconds = 0
		assert.Equal(t, c.want, finished[0], c.path)
		c.want.Code = 0
		assert.Equal(t, c.want, started[0], c.path)
	}
	finished = nil
	ask(s.ReadOnly(), "GET", "/pods", "")
	assert.Equal(t, "readonly", finished[0].ServerType)
}

// Several servers, for several nodes, are in one process: each has its own pods and
// users.
func TestServersOfSeveralNodesAreIndependent(t *testing.T) {
	for _, node := range []string{"n1", "n2"} {
		pod := web.DeepCopy()
		pod.Name = "of-" + node
		s := newServer(t, func(c *server.Config) {
			c.NodeName, c.Pods = node, pods{pod}
			c.Authenticator, c.Authorizer = named{}, may{"of-n1": {"get nodes/pods"}} // of n1 only
		})
		w := ask(s, "GET", "/pods", "", "User: of-n1")
		if node == "n1" {
			assert.Contains(t, w.Body.String(), `"name":"of-n1"`)
		} else {
			assert.Equal(t, 403, w.Code)
		}
	}
}

func TestMetricsHandlersAreServedUnchanged(t *testing.T) {
	s := newServer(t, func(c *server.Config) {
		c.Authorizer = auth.AlwaysAllow{}
		c.Node.Metrics = map[string]http.Handler{"/metrics/slis": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x 1\n") })}
	})
	assert.Equal(t, "x 1\n", ask(s, "GET", "/metrics/slis", "").Body.String())
	assert.Equal(t, "x 1\n", ask(s.ReadOnly(), "GET", "/metrics/slis", "").Body.String())
	assert.Equal(t, 404, ask(s, "GET", "/metrics", "").Code)
}
