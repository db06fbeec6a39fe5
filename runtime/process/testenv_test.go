//go:build linux || darwin

package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/process"
)

// A node is a runtime on a directory, with helpers for tests.
type node struct {
	*process.Runtime
	t    *testing.T
	dir  string
	logs string
}

func newNode(t *testing.T) *node {
	t.Helper()
	if goruntime.GOOS != "linux" && goruntime.GOOS != "darwin" {
		t.Skip("needs Linux or macOS")
	}
	n := &node{t: t, dir: filepath.Join(t.TempDir(), "state"), logs: t.TempDir()}
	n.open(process.Config{})
	t.Cleanup(n.clear)
	return n
}

func (n *node) open(cfg process.Config) {
	n.t.Helper()
	cfg.Dir = n.dir
	rt, err := process.Open(cfg)
	require.NoError(n.t, err)
	n.Runtime = rt
}

// clear stops all processes of the test.
func (n *node) clear() {
	ctx := context.WithoutCancel(n.t.Context())
	if _, err := n.Status(ctx, false); err != nil {
		n.open(process.Config{})
	}
	list, err := n.ListPodSandbox(ctx, nil)
	require.NoError(n.t, err)
	for _, s := range list {
		require.NoError(n.t, n.RemovePodSandbox(ctx, s.GetId()))
	}
	require.NoError(n.t, n.Close(ctx))
}

func (n *node) sandbox(name string) string {
	n.t.Helper()
	id, err := n.RunPodSandbox(n.t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		LogDirectory: filepath.Join(n.logs, name),
		Labels:       map[string]string{"pod": name},
	}, "")
	require.NoError(n.t, err)
	return id
}

// sh returns a container that runs a shell script.
func sh(name, script string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: "example.com/none:1"},
		Command:  []string{"/bin/sh", "-c"}, Args: []string{script},
		Labels:  map[string]string{"container": name},
		LogPath: name + "/0.log",
	}
}

func (n *node) start(sandbox string, cfg *runtimeapi.ContainerConfig) string {
	n.t.Helper()
	id, err := n.CreateContainer(n.t.Context(), sandbox, cfg, nil)
	require.NoError(n.t, err)
	require.NoError(n.t, n.StartContainer(n.t.Context(), id))
	return id
}

func (n *node) status(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	resp, err := n.ContainerStatus(n.t.Context(), id, false)
	require.NoError(n.t, err)
	return resp.GetStatus()
}

// pid returns the PID of the main process, or with key "supervisorPid" of its supervisor.
func (n *node) pid(id, key string) int {
	n.t.Helper()
	resp, err := n.ContainerStatus(n.t.Context(), id, true)
	require.NoError(n.t, err)
	pid, err := strconv.Atoi(resp.GetInfo()[key])
	require.NoError(n.t, err)
	return pid
}

// patience is the timeout for operations that are fast on an idle machine.
const patience = 90 * time.Second

// eventually polls ok in this goroutine and starts none, for tests that count goroutines.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "never: "+what)
	}
}

func (n *node) exited(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	eventually(n.t, "container exits", func() bool {
		return n.status(id).GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return n.status(id)
}

func (n *node) log(pod, container string) string {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.logs, pod, container, "0.log"))
	require.NoError(n.t, err)
	return string(data)
}

// logged waits for a line of a log.
func (n *node) logged(pod, container, line string) {
	n.t.Helper()
	eventually(n.t, "log has "+line, func() bool {
		return exec.Command("grep", "-q", line, filepath.Join(n.logs, pod, container, "0.log")).Run() == nil
	})
}
