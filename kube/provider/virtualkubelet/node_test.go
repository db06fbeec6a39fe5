package virtualkubelet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/virtualkubelet"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A backend is the runtime in memory with the other capabilities that a node serves.
type backend struct {
	*runtimetest.Runtime
	log string // file
}

func newBackend(t *testing.T) backend {
	log := filepath.Join(t.TempDir(), "0.log")
	require.NoError(t, os.WriteFile(log, []byte("2026-01-02T03:04:05Z stdout F one\n2026-01-02T03:04:06Z stdout F two\n"), 0o600))
	return backend{Runtime: new(runtimetest.Runtime), log: log}
}

func (b backend) LogPath(context.Context, string) (string, error) { return b.log, nil }

// StreamExec copies the input, then prints the command and the size of the terminal; its
// exit code is the number of arguments.
func (b backend) StreamExec(_ context.Context, _ string, cmd []string, s runtime.Streams) (int32, error) {
	if s.Stdin != nil {
		if _, err := io.Copy(s.Stdout, s.Stdin); err != nil {
			return 0, err
		}
	}
	fmt.Fprint(s.Stdout, strings.Join(cmd, " "))
	if s.TTY {
		size := <-s.Resize
		fmt.Fprintf(s.Stdout, " %dx%d", size.Width, size.Height)
	} else {
		fmt.Fprint(s.Stderr, "warning")
	}
	return int32(len(cmd) - 1), nil
}

func (b backend) Attach(_ context.Context, _ string, s runtime.Streams) error {
	_, err := io.Copy(s.Stdout, s.Stdin)
	return err
}

func (b backend) PortForward(_ context.Context, _ types.UID, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	_, err := fmt.Fprintf(conn, "port %d", port)
	return err
}

func (b backend) ContainerStats(context.Context, string) (*runtime.ContainerStats, error) {
	return nil, runtime.ErrUnsupported
}

func (b backend) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	pods, err := b.Pods(ctx)
	var out []runtime.PodStats
	for _, p := range pods {
		out = append(out, runtime.PodStats{
			UID: p.UID, Name: p.Name, Namespace: p.Namespace, SandboxID: p.Sandboxes[0].ID,
			CPU:    &runtime.CPUUsage{At: time.Now(), CoreNanos: new(uint64(2e9))},
			Memory: &runtime.MemoryUsage{At: time.Now(), WorkingSet: new(uint64(1 << 20))},
		})
	}
	return out, err
}

// A cluster is a virtual-kubelet node with one running pod, default/web, and its HTTP server.
type cluster struct {
	*virtualkubelet.Provider
	t      *testing.T
	client kubernetes.Interface
	server *httptest.Server
}

func start(t *testing.T, rt runtime.Runtime, auth nodeutil.Auth) *cluster {
	api := new(apitest.Server)
	config := api.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	p, err := virtualkubelet.New(provider.Config{Runtime: rt, NodeName: "virtual"})
	require.NoError(t, err)
	var handler http.Handler
	node, err := p.NewNode(client, auth, func(c *nodeutil.NodeConfig) error {
		handler = c.Handler
		c.NodeSpec.Status.Capacity = v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}
		return nil
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- p.Run(ctx) }()
	go func() { done <- node.Run(ctx) }()
	c := &cluster{Provider: p, t: t, client: client, server: httptest.NewServer(handler)}
	t.Cleanup(func() {
		c.server.Close()
		stop()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				assert.NoError(t, err)
			}
		}
	})
	require.NoError(t, node.WaitReady(ctx, time.Minute))
	_, err = client.CoreV1().Pods("default").Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: v1.PodSpec{
			NodeName: "virtual", RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []v1.Container{{Name: "app", Image: "web:1"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.ready() }, time.Minute, 10*time.Millisecond)
	return c
}

func (c *cluster) ready() bool {
	pod, err := c.client.CoreV1().Pods("default").Get(c.t.Context(), "web", metav1.GetOptions{})
	return err == nil && status.IsReady(&pod.Status)
}

// get returns the response to a GET.
func (c *cluster) get(path string) (code int, body string) {
	resp, err := http.Get(c.server.URL + path)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(text)
}

// stream runs a command, or attaches, with the client that kubectl uses.
func (c *cluster) stream(path string, s remotecommand.StreamOptions) error {
	u, err := url.Parse(c.server.URL + path)
	require.NoError(c.t, err)
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: c.server.URL}, http.MethodPost, u)
	require.NoError(c.t, err)
	return executor.StreamWithContext(c.t.Context(), s)
}

func TestANodeServesItsPods(t *testing.T) {
	c := start(t, newBackend(t), nodeutil.NoAuth())

	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "virtual", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 10, node.Status.Capacity.Pods().Value())
	for _, path := range []string{"/pods", "/runningpods/"} {
		code, body := c.get(path)
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, `"name":"web"`, path)
	}

	t.Run("logs", func(t *testing.T) {
		code, body := c.get("/containerLogs/default/web/app")
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "one\ntwo\n", body)
		_, body = c.get("/containerLogs/default/web/app?tailLines=1&timestamps=true")
		assert.Equal(t, "2026-01-02T03:04:06.000000000Z two\n", body)
		_, body = c.get("/containerLogs/default/web/app?limitBytes=2")
		assert.Equal(t, "on", body)
		_, body = c.get("/containerLogs/default/web/app?sinceTime=2026-01-02T03:04:06Z")
		assert.Equal(t, "two\n", body)
		code, _ = c.get("/containerLogs/default/other/app")
		assert.Equal(t, http.StatusNotFound, code)
		code, body = c.get("/containerLogs/default/web/app?previous=true")
		assert.Equal(t, http.StatusInternalServerError, code)
		assert.Contains(t, body, "previous terminated container")
	})

	t.Run("exec", func(t *testing.T) {
		var out, errs bytes.Buffer
		require.NoError(t, c.stream("/exec/default/web/app?command=date&input=1&output=1&error=1", remotecommand.StreamOptions{
			Stdin: strings.NewReader("typed "), Stdout: &out, Stderr: &errs,
		}))
		assert.Equal(t, "typed date", out.String())
		assert.Equal(t, "warning", errs.String())

		err := c.stream("/exec/default/web/app?command=test&command=-e&command=x&output=1&error=1", remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
		var exit exec.CodeExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 2, exit.Code)

		out.Reset()
		require.NoError(t, c.stream("/exec/default/web/app?command=top&tty=1&output=1", remotecommand.StreamOptions{
			Stdout: &out, Tty: true, TerminalSizeQueue: &sizes{{Width: 80, Height: 24}},
		}))
		assert.Equal(t, "top 80x24", out.String())

		err = c.stream("/exec/default/other/app?command=date&output=1", remotecommand.StreamOptions{Stdout: &out})
		assert.ErrorContains(t, err, "pod default/other: not found")
	})

	t.Run("attach", func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, c.stream("/attach/default/web/app?input=1&output=1", remotecommand.StreamOptions{
			Stdin: strings.NewReader("typed"), Stdout: &out,
		}))
		assert.Equal(t, "typed", out.String())
	})

	t.Run("port-forward", func(t *testing.T) {
		transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: c.server.URL})
		require.NoError(t, err)
		u, err := url.Parse(c.server.URL + "/portForward/default/web")
		require.NoError(t, err)
		stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		forward, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u),
			[]string{"0:8080"}, stop, ready, io.Discard, io.Discard)
		require.NoError(t, err)
		go func() { done <- forward.ForwardPorts() }()
		<-ready
		ports, err := forward.GetPorts()
		require.NoError(t, err)
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", ports[0].Local))
		require.NoError(t, err)
		text, err := io.ReadAll(conn)
		require.NoError(t, errors.Join(err, conn.Close()))
		assert.Equal(t, "port 8080", string(text))
		close(stop)
		require.NoError(t, <-done)
	})

	t.Run("statistics", func(t *testing.T) {
		code, body := c.get("/stats/summary")
		require.Equal(t, http.StatusOK, code, body)
		var summary statsv1alpha1.Summary
		require.NoError(t, json.Unmarshal([]byte(body), &summary))
		require.Len(t, summary.Pods, 1)
		assert.Equal(t, "web", summary.Pods[0].PodRef.Name)
		assert.Equal(t, "virtual", summary.Node.NodeName)
		require.NotNil(t, summary.Node.CPU)
		assert.EqualValues(t, 2e9, *summary.Node.CPU.UsageCoreNanoSeconds)
		assert.EqualValues(t, 1<<20, *summary.Node.Memory.WorkingSetBytes)

		code, body = c.get("/metrics/resource")
		require.Equal(t, http.StatusOK, code, body)
		assert.Contains(t, body, `pod_memory_working_set_bytes{namespace="default",pod="web"} 1.048576e+06`)
		assert.Contains(t, body, "node_cpu_usage_seconds_total 2 ")
		assert.Contains(t, body, "resource_scrape_error 0")
	})
}

// sizes is a remotecommand.TerminalSizeQueue.
type sizes []remotecommand.TerminalSize

func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(*s) == 0 {
		return nil
	}
	size := (*s)[0]
	*s = (*s)[1:]
	return &size
}

// An incapable runtime hides its optional interfaces.
type incapable struct{ runtime.Runtime }

func (incapable) Unwrap() any { return nil }

func TestARuntimeWithoutCapabilitiesIsUnsupported(t *testing.T) {
	c := start(t, incapable{new(runtimetest.Runtime)}, nodeutil.NoAuth())
	for _, path := range []string{"/containerLogs/default/web/app", "/stats/summary", "/metrics/resource"} {
		code, body := c.get(path)
		assert.Equal(t, http.StatusInternalServerError, code, path)
		assert.Contains(t, body, runtime.ErrUnsupported.Error(), path)
	}
	err := c.stream("/exec/default/web/app?command=date&output=1", remotecommand.StreamOptions{Stdout: io.Discard})
	assert.ErrorContains(t, err, runtime.ErrUnsupported.Error())
}

// nothing rejects all pods.
type nothing struct{}

func (nothing) Admit(context.Context, *v1.Pod) *runtime.Rejection {
	return &runtime.Rejection{Reason: "NoRoom", Message: "no pod may run"}
}

func TestEventsAreWrittenWithoutARecord(t *testing.T) {
	for want, record := range map[bool]func(runtime.Event){true: nil, false: func(runtime.Event) {}} {
		api := new(apitest.Server)
		client, err := kubernetes.NewForConfig(api.RESTConfig())
		require.NoError(t, err)
		p, err := virtualkubelet.New(provider.Config{Runtime: new(runtimetest.Runtime), NodeName: "virtual", Admitters: pipeline.Admitters{nothing{}}, Record: record})
		require.NoError(t, err)
		_, err = p.NewNode(client, nodeutil.NoAuth())
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"},
			Spec:       v1.PodSpec{NodeName: "virtual", Containers: []v1.Container{{Name: "app", Image: "web:1"}}},
		}
		rejected := make(chan struct{}, 10)
		p.NotifyPods(ctx, func(pod *v1.Pod) {
			if pod.Status.Reason == "NoRoom" {
				rejected <- struct{}{}
			}
		})
		require.NoError(t, p.CreatePod(ctx, pod))
		select {
		case <-rejected:
		case <-time.After(time.Minute):
			require.Fail(t, "the pod is not rejected")
		}
		stop()
		<-done // the last events are written
		events, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		if !want {
			assert.Empty(t, events.Items)
			continue
		}
		require.Len(t, events.Items, 1)
		assert.Equal(t, "NoRoom", events.Items[0].Reason)
		assert.Equal(t, "web", events.Items[0].InvolvedObject.Name)
	}
}
