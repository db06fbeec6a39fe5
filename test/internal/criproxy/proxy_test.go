package criproxy_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

// behind starts a runtime in memory and a proxy to it, and returns a client of the proxy.
func behind(t *testing.T, cfg criproxy.Config) (*criproxy.Proxy, runtimeapi.RuntimeServiceClient) {
	t.Helper()
	dir, err := os.MkdirTemp("", "criproxy") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	cfg.Upstream, cfg.Listen = "unix://"+filepath.Join(dir, "cri.sock"), filepath.Join(dir, "proxy.sock")
	l, err := serve.Listen(t.Context(), cfg.Upstream)
	require.NoError(t, err)
	server, err := serve.New(serve.Config{Listener: l, Runtime: fake, Images: fake})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-served)
	})
	proxy, err := criproxy.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, proxy.Close()) })
	conn, err := grpc.NewClient("unix://"+cfg.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return proxy, runtimeapi.NewRuntimeServiceClient(conn)
}

func sandbox(name string) *runtimeapi.RunPodSandboxRequest {
	return &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name + "-uid", Attempt: 1},
		Labels:   map[string]string{"app": "web"},
	}}
}

func TestCallsAreForwardedAndRecordedInOrder(t *testing.T) {
	proxy, client := behind(t, criproxy.Config{})
	made, err := client.RunPodSandbox(t.Context(), sandbox("web"))
	require.NoError(t, err)
	_, err = client.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: "missing"})
	assert.Equal(t, codes.NotFound, status.Code(err), "the code of the runtime: %v", err)

	calls := proxy.Calls()
	require.Len(t, calls, 2)
	assert.Zero(t, proxy.Dropped())
	assert.Equal(t, "RunPodSandbox", calls[0].Method)
	assert.Equal(t, map[string]any{"config": map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "default", "uid": "web-uid", "attempt": uint64(1)},
		"labels":   map[string]any{"app": "web"},
	}}, calls[0].Request)
	assert.Equal(t, map[string]any{"pod_sandbox_id": made.PodSandboxId}, calls[0].Response)
	assert.Positive(t, calls[0].Took)
	assert.Empty(t, calls[0].Code)
	assert.Equal(t, map[string]any{"container_id": "missing"}, calls[1].Request)
	assert.Equal(t, "NotFound", calls[1].Code)
	assert.Contains(t, calls[1].Error, "missing")
	assert.Nil(t, calls[1].Response)
	_, err = json.Marshal(calls)
	assert.NoError(t, err)
}

func TestStreamsAreForwardedWhileTheyAreOpen(t *testing.T) {
	proxy, client := behind(t, criproxy.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	events, err := client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(proxy.Calls()) == 1 }, 90*time.Second, time.Millisecond)
	// The runtime may register the stream later than the proxy: an event of each sandbox.
	received := make(chan *runtimeapi.ContainerEventResponse, 1)
	go func() {
		event, _ := events.Recv()
		received <- event
	}()
	for i := 0; ; i++ {
		_, err := client.RunPodSandbox(ctx, sandbox("web"+string(rune('a'+i%26))))
		require.NoError(t, err)
		select {
		case event := <-received:
			assert.NotEmpty(t, event.GetContainerId())
			cancel()
			assert.Eventually(t, func() bool { return proxy.Calls()[0].Code == "Canceled" }, 90*time.Second, time.Millisecond)
			assert.Nil(t, proxy.Calls()[0].Response)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestTheRecordIsBounded(t *testing.T) {
	for name, cfg := range map[string]criproxy.Config{"calls": {MaxCalls: 1}, "bytes": {MaxBytes: 200}} {
		proxy, client := behind(t, cfg)
		for range 10 {
			_, err := client.Status(t.Context(), &runtimeapi.StatusRequest{Verbose: true})
			require.NoError(t, err, name)
		}
		assert.NotEmpty(t, proxy.Calls(), name)
		assert.Positive(t, proxy.Dropped(), name)
	}
}

func TestOnlyTheChosenResponsesAreRecorded(t *testing.T) {
	proxy, client := behind(t, criproxy.Config{Responses: func(method string) bool { return method == "RunPodSandbox" }})
	_, err := client.Version(t.Context(), &runtimeapi.VersionRequest{Version: "0.1.0"})
	require.NoError(t, err)
	_, err = client.RunPodSandbox(t.Context(), sandbox("web"))
	require.NoError(t, err)
	assert.Nil(t, proxy.Calls()[0].Response)
	assert.NotNil(t, proxy.Calls()[1].Response)
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []criproxy.Config{{}, {Listen: "x"}, {Upstream: "unix:///x"}, {Listen: "x", Upstream: "unix:///x", MaxCalls: -1}, {Listen: "/missing/x", Upstream: "unix:///x"}} {
		_, err := criproxy.New(cfg)
		assert.Error(t, err, "%+v", cfg)
	}
}

func TestDecode(t *testing.T) {
	const method = "/runtime.v1.RuntimeService/CreateContainer"
	encode := func(m proto.Message) []byte {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return data
	}
	got, err := criproxy.Decode(method, encode(&runtimeapi.CreateContainerRequest{Config: &runtimeapi.ContainerConfig{
		Command: []string{"sh", ""}, Tty: true, StopSignal: runtimeapi.Signal_SIGNAL_SIGTERM,
		Mounts: []*runtimeapi.Mount{{ContainerPath: "/data", Propagation: runtimeapi.MountPropagation(77)}},
		Envs:   []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}},
		Linux:  &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: -1, Unified: map[string]string{"memory.min": "1"}}},
	}}), false)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"config": map[string]any{
		"command": []any{"sh", ""}, "tty": true, "stop_signal": "SIGNAL_SIGTERM",
		"mounts": []any{map[string]any{"container_path": "/data", "propagation": int64(77)}},
		"envs":   []any{map[string]any{"key": "A", "value": "1"}},
		"linux":  map[string]any{"resources": map[string]any{"cpu_quota": int64(-1), "unified": map[string]any{"memory.min": "1"}}},
	}}, got)

	_, err = criproxy.Decode("/runtime.v2.RuntimeService/Magic", nil, false)
	assert.ErrorContains(t, err, "runtime.v2.RuntimeService/Magic")
	_, err = criproxy.Decode("/runtime.v1.RuntimeService", nil, false)
	assert.ErrorContains(t, err, "not a method")
	_, err = criproxy.Decode(method, []byte("no message"), false)
	assert.Error(t, err)
	later := encode(&runtimeapi.CreateContainerRequest{})
	later = append(later, 0xba, 0x3e, 0x01, 'x') // field 999
	_, err = criproxy.Decode(method, later, false)
	assert.ErrorContains(t, err, "4 bytes of unknown fields")
}
