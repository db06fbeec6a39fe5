package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func sh(script string) v1.Container {
	return v1.Container{Name: "main", Image: "host", ImagePullPolicy: v1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
}

func TestAPodIsAProcess(t *testing.T) {
	config := new(apitest.Server).RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	routes, done := make(chan http.Handler, 1), make(chan error, 1)
	go func() {
		done <- run(ctx, client, nodeutil.NoAuth(), "laptop", t.TempDir(), func(c *nodeutil.NodeConfig) error {
			routes <- c.Handler
			return nil
		})
	}()
	server := httptest.NewServer(<-routes)
	defer server.Close()
	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: v1.PodSpec{
			NodeName: "laptop", RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &v1.PodSecurityContext{}, EnableServiceLinks: new(false), DNSPolicy: v1.DNSDefault,
			Containers: []v1.Container{sh("echo hello; exec sleep 600")},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	get := func(path string) string {
		resp, err := http.Get(server.URL + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return get("/containerLogs/default/web/main") == "hello\n" }, time.Minute, 50*time.Millisecond)

	u, err := url.Parse(server.URL + "/exec/default/web/main?command=echo&command=typed&output=1")
	require.NoError(t, err)
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: server.URL}, http.MethodPost, u)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out}))
	assert.Equal(t, "typed\n", out.String())
	assert.Contains(t, get("/metrics/resource"), `container_memory_working_set_bytes{container="main",namespace="default",pod="web"}`)

	require.NoError(t, pods.Delete(ctx, "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return get("/runningpods/") != "" && get("/containerLogs/default/web/main") != "hello\n" }, time.Minute, 50*time.Millisecond)
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		assert.NoError(t, err)
	}
}

// The suite has two minutes of grace periods with Containers.Stubborn, which are tested in
// package runtime/cri.
func TestTheRuntimeKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		rt, err := newRuntime(t.TempDir())
		require.NoError(t, err)
		return rt
	}, runtimetest.Suite{
		Containers: runtimetest.Containers{
			Long: sh("trap 'exit 0' TERM; while :; do sleep 0.05; done"),
			Exit: func(code int32) v1.Container { return sh("sleep 0.1; exit " + strconv.Itoa(int(code))) },
		},
		Timing:   runtimetest.Timing{PollInterval: 50 * time.Millisecond},
		Parallel: 8,
	})
}
