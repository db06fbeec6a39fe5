package serve_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func dial(t *testing.T, socket string, cfg remote.Config) *remote.Client {
	t.Helper()
	client, err := remote.Dial(t.Context(), socket, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// Every method of both services works with the official client, with lists as a whole
// and streamed, and with the streams at the returned URLs.
func TestTheOfficialClientHasEveryVerb(t *testing.T) {
	for _, pieces := range []bool{false, true} {
		fake := newFake(t, fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"app": {
			Logs:      []fake.LogLine{{Text: "tick", Every: 10 * time.Millisecond}},
			Commands:  []fake.Command{{Prefix: "fail", Stderr: "no", ExitCode: 3}, {Stdout: "hello"}},
			Endpoints: []fake.Endpoint{{Port: 8080, HTTP: true}},
		}}}})
		used := map[string]bool{}
		socket := start(t, serve.Config{Runtime: fake, Images: fake, Streams: fake})
		client := dial(t, socket, remote.Config{StreamLists: pieces})
		ctx := logs.Context(t.Context(), slog.New(slog.DiscardHandler))
		c := verbs{t: t, ctx: ctx, used: used, RuntimeService: client.Runtime, images: client.Images}
		c.everything()
		for _, kind := range []reflect.Type{reflect.TypeFor[internalapi.RuntimeService](), reflect.TypeFor[internalapi.ImageManagerService]()} {
			for i := range kind.NumMethod() {
				name := kind.Method(i).Name
				assert.True(t, used[name] || name == "Close" || ofSecurityProfiles(name), "%s was not tried", name)
			}
		}
	}
}

// ofSecurityProfiles reports whether a method is one of those of 1.38 that are not implemented, of the alpha feature
// SecurityProfileOCI.
func ofSecurityProfiles(method string) bool { return strings.Contains(method, "SecurityProfile") }

type verbs struct {
	internalapi.RuntimeService
	t      *testing.T
	ctx    context.Context
	images internalapi.ImageManagerService
	used   map[string]bool
}

// ok records that a method was called, and requires success.
func (c verbs) ok(verb string, err error) {
	c.t.Helper()
	c.used[verb] = true
	require.NoError(c.t, err, verb)
}

// refused records that a method was called, and requires the code.
func (c verbs) refused(verb string, code codes.Code, err error) {
	c.t.Helper()
	c.used[verb] = true
	require.Equal(c.t, code, status.Code(err), "%s: %v", verb, err)
}

func (c verbs) everything() {
	_, err := c.Version(c.ctx, "0.1.0")
	c.ok("Version", err)
	_, err = c.Status(c.ctx, true)
	c.ok("Status", err)
	_, err = c.RuntimeConfig(c.ctx)
	c.ok("RuntimeConfig", err)
	c.ok("UpdateRuntimeConfig", c.UpdateRuntimeConfig(c.ctx, &runtimeapi.RuntimeConfig{}))

	events := make(chan *runtimeapi.ContainerEventResponse, 100)
	watching, stop := context.WithCancel(c.ctx)
	defer stop()
	established, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- c.GetContainerEvents(watching, events, func(stream runtimeapi.RuntimeService_GetContainerEventsClient) {
			_, _ = stream.Header()
			close(established)
		})
	}()
	<-established

	image := &runtimeapi.ImageSpec{Image: "docker.io/library/busybox:1"}
	_, err = c.images.PullImage(c.ctx, image, nil, nil)
	c.ok("PullImage", err)
	st, err := c.images.ImageStatus(c.ctx, image, true)
	c.ok("ImageStatus", err)
	assert.NotNil(c.t, st.Image)
	images, err := c.images.ListImages(c.ctx, nil)
	c.ok("ListImages", err)
	assert.Len(c.t, images, 1)
	_, err = c.images.ImageFsInfo(c.ctx)
	c.ok("ImageFsInfo", err)

	pod, err := c.RunPodSandbox(c.ctx, sandboxOf("u"), "")
	c.ok("RunPodSandbox", err)
	assert.Equal(c.t, pod, (<-events).ContainerId)
	pods, err := c.ListPodSandbox(c.ctx, nil)
	c.ok("ListPodSandbox", err)
	assert.Len(c.t, pods, 1)
	_, err = c.PodSandboxStatus(c.ctx, pod, true)
	c.ok("PodSandboxStatus", err)
	id, err := c.CreateContainer(c.ctx, pod, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: image,
	}, sandboxOf("u"))
	c.ok("CreateContainer", err)
	c.ok("StartContainer", c.StartContainer(c.ctx, id))
	containers, err := c.ListContainers(c.ctx, nil)
	c.ok("ListContainers", err)
	assert.Len(c.t, containers, 1)
	_, err = c.ContainerStatus(c.ctx, id, true)
	c.ok("ContainerStatus", err)
	c.ok("UpdateContainerResources", c.UpdateContainerResources(c.ctx, id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: 7}}))
	_, err = c.UpdatePodSandboxResources(c.ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: pod})
	c.ok("UpdatePodSandboxResources", err)
	c.ok("ReopenContainerLog", c.ReopenContainerLog(c.ctx, id))
	c.streams(pod, id)
	c.figures(pod, id)
	c.refused("CheckpointContainer", codes.Unknown, c.CheckpointContainer(c.ctx, &runtimeapi.CheckpointContainerRequest{ContainerId: id}))
	c.refused("CheckpointPod", codes.Unimplemented, c.CheckpointPod(c.ctx, &runtimeapi.CheckpointPodRequest{PodSandboxId: pod}))
	_, err = c.RestorePod(c.ctx, &runtimeapi.RestorePodRequest{})
	c.refused("RestorePod", codes.Unimplemented, err)

	c.ok("StopContainer", c.StopContainer(c.ctx, id, 1))
	c.ok("RemoveContainer", c.RemoveContainer(c.ctx, id))
	c.ok("StopPodSandbox", c.StopPodSandbox(c.ctx, pod))
	c.ok("RemovePodSandbox", c.RemovePodSandbox(c.ctx, pod))
	c.ok("RemoveImage", c.images.RemoveImage(c.ctx, image))
	stop()
	c.refused("GetContainerEvents", codes.Canceled, <-ended)
}

func (c verbs) streams(pod, id string) {
	out, _, err := c.ExecSync(c.ctx, id, []string{"hi"}, time.Minute)
	c.ok("ExecSync", err)
	assert.Equal(c.t, "hello", string(out))
	_, stderr, err := c.ExecSync(c.ctx, id, []string{"fail"}, 0)
	assert.Equal(c.t, "no", string(stderr))
	var exit utilexec.CodeExitError
	require.ErrorAs(c.t, err, &exit)
	assert.Equal(c.t, 3, exit.Code)

	streams := new(streaming.Client)
	parse := func(verb, raw string, err error) *url.URL {
		c.ok(verb, err)
		u, err := url.Parse(raw)
		require.NoError(c.t, err)
		return u
	}
	exec, err := c.Exec(c.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"fail"}, Stderr: true})
	var text bytes.Buffer
	code, err := streams.Exec(c.ctx, parse("Exec", exec.GetUrl(), err), runtime.Streams{Stderr: &text})
	require.NoError(c.t, err)
	assert.EqualValues(c.t, 3, code)
	assert.Equal(c.t, "no", text.String())

	attach, err := c.Attach(c.ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true})
	u := parse("Attach", attach.GetUrl(), err)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	shown, show := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- streams.Attach(ctx, u, runtime.Streams{Stdout: show}) }()
	line := make([]byte, 5)
	_, err = io.ReadFull(shown, line)
	require.NoError(c.t, err)
	assert.Equal(c.t, "tick\n", string(line))
	cancel()
	shown.Close()
	assert.Error(c.t, <-ended)

	forward, err := c.PortForward(c.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: pod})
	u = parse("PortForward", forward.GetUrl(), err)
	get := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _ = streams.PortForward(c.ctx, u, 8080, theirs) }()
		return ours, nil
	}}}
	resp, err := get.Get("http://pod/")
	require.NoError(c.t, err)
	resp.Body.Close()
	assert.Equal(c.t, http.StatusOK, resp.StatusCode)
}

func (c verbs) figures(pod, id string) {
	_, err := c.ContainerStats(c.ctx, id)
	c.ok("ContainerStats", err)
	stats, err := c.ListContainerStats(c.ctx, nil)
	c.ok("ListContainerStats", err)
	assert.Len(c.t, stats, 1)
	_, err = c.PodSandboxStats(c.ctx, pod)
	c.ok("PodSandboxStats", err)
	pods, err := c.ListPodSandboxStats(c.ctx, nil)
	c.ok("ListPodSandboxStats", err)
	assert.Len(c.t, pods, 1)
	descriptors, err := c.ListMetricDescriptors(c.ctx)
	c.ok("ListMetricDescriptors", err)
	assert.NotEmpty(c.t, descriptors)
	metrics, err := c.ListPodSandboxMetrics(c.ctx)
	c.ok("ListPodSandboxMetrics", err)
	assert.Len(c.t, metrics, 1)
	assert.True(c.t, strings.HasPrefix(metrics[0].ContainerMetrics[0].Metrics[0].Name, "container_"))
}
