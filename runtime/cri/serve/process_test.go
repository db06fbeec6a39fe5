//go:build linux || darwin

package serve_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// TestMain runs the supervisor of processes in the test binary.
func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// The process runtime is served to a CRI client.
func TestProcessesAreServedAsWell(t *testing.T) {
	dir := t.TempDir()
	rt, err := process.Open(process.Config{Dir: filepath.Join(dir, "state")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	client := dial(t, start(t, serve.Config{Runtime: rt, Images: rt, Streams: rt}), remote.Config{})
	ctx := t.Context()

	config := sandboxOf("served")
	config.LogDirectory = dir
	pod, err := client.Runtime.RunPodSandbox(ctx, config, "")
	require.NoError(t, err)
	id, err := client.Runtime.CreateContainer(ctx, pod, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "none"},
		Command: []string{"sleep", "1000"}, LogPath: "app.log",
	}, config)
	require.NoError(t, err)
	require.NoError(t, client.Runtime.StartContainer(ctx, id))
	t.Cleanup(func() { assert.NoError(t, rt.RemovePodSandbox(context.Background(), pod)) })

	_, _, err = client.Runtime.ExecSync(ctx, id, []string{"sh", "-c", "exit 7"}, 0)
	var exit utilexec.CodeExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, exit.Code)

	resp, err := client.Runtime.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"cat"}, Stdin: true, Stdout: true})
	require.NoError(t, err)
	u, err := url.Parse(resp.Url)
	require.NoError(t, err)
	var out bytes.Buffer
	code, err := new(streaming.Client).Exec(ctx, u, runtime.Streams{Stdin: strings.NewReader("hello"), Stdout: &out})
	require.NoError(t, err)
	assert.Zero(t, code)
	assert.Equal(t, "hello", out.String())
	require.NoError(t, client.Runtime.StopContainer(ctx, id, 1))
}
