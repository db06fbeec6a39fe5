package fakecri_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A node is a runtime in a test, in virtual time.
type node struct {
	*testing.T
	*fakecri.Runtime
	ctx context.Context
}

// on runs a test on a runtime.
func on(t *testing.T, cfg fakecri.Config, test func(n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := fakecri.New(cfg)
		require.NoError(t, err)
		test(&node{t, r, t.Context()})
	})
}

// does returns the configuration of a runtime whose containers "web" have behavior b.
func does(b fake.Behavior) fakecri.Config {
	return fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"web": b}}}
}

func podConfig(uid string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "pod-" + uid, Namespace: "ns", Uid: uid},
		Labels:       map[string]string{"io.kubernetes.pod.uid": uid, "app": "shop"},
		Annotations:  map[string]string{"note": "kept"},
		LogDirectory: "/logs/" + uid,
	}
}

func containerConfig(uid, name string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: "registry.example/web:1"},
		Labels:   map[string]string{"io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": name},
		LogPath:  name + "/0.log",
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: &runtimeapi.LinuxContainerResources{CpuShares: 100, MemoryLimitInBytes: 1 << 20},
		},
	}
}

func (n *node) sandbox(uid string) string {
	n.Helper()
	id, err := n.RunPodSandbox(n.ctx, podConfig(uid), "")
	require.NoError(n, err)
	return id
}

func (n *node) created(sandbox, uid, name string, attempt uint32) string {
	n.Helper()
	cfg := containerConfig(uid, name)
	cfg.Metadata.Attempt = attempt
	_, err := n.PullImage(n.ctx, cfg.Image, nil, nil)
	require.NoError(n, err)
	id, err := n.CreateContainer(n.ctx, sandbox, cfg, podConfig(uid))
	require.NoError(n, err)
	return id
}

// started starts a container web of pod a, and returns its ID and its sandbox.
func (n *node) started() (id, sandbox string) {
	n.Helper()
	sandbox = n.sandbox("a")
	id = n.created(sandbox, "a", "web", 0)
	require.NoError(n, n.StartContainer(n.ctx, id))
	return id, sandbox
}

func (n *node) look(id string) *runtimeapi.ContainerStatus {
	n.Helper()
	resp, err := n.ContainerStatus(n.ctx, id, false)
	require.NoError(n, err)
	return resp.Status
}

// exited checks the exit code, reason and time of an exited container.
func (n *node) exited(id string, code int32, reason string, ago time.Duration) {
	n.Helper()
	st := n.look(id)
	require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, st.State)
	assert.Equal(n, code, st.ExitCode)
	assert.Equal(n, reason, st.Reason)
	assert.Equal(n, ago, time.Since(time.Unix(0, st.FinishedAt)))
}

func (n *node) runs(id string) {
	n.Helper()
	require.Equal(n, runtimeapi.ContainerState_CONTAINER_RUNNING, n.look(id).State)
}

func hasCode(t testing.TB, want codes.Code, err error) {
	t.Helper()
	assert.Equal(t, want, status.Code(err), "%v", err)
}

func TestVersionAndStatus(t *testing.T) {
	on(t, fakecri.Config{Name: "toy", Handlers: []string{"sandboxed"}}, func(n *node) {
		v, err := n.Version(n.ctx, "")
		require.NoError(n, err)
		assert.Equal(n, "toy", v.RuntimeName)
		assert.Equal(n, "v1", v.RuntimeApiVersion)

		st, err := n.Status(n.ctx, true)
		require.NoError(n, err)
		for _, c := range st.Status.Conditions {
			assert.True(n, c.Status, c.Type)
		}
		var handlers []string
		for _, h := range st.RuntimeHandlers {
			handlers = append(handlers, h.Name)
		}
		assert.Equal(n, []string{"", "runc", "sandboxed"}, handlers)
		assert.NotEmpty(n, st.Info)

		_, err = n.RuntimeConfig(n.ctx)
		assert.NoError(n, err)
		assert.NoError(n, n.UpdateRuntimeConfig(n.ctx, nil))
		assert.NoError(n, n.Close(n.ctx))
	})
}

func TestAConfigThatNamesTheDefaultHandlerIsRefused(t *testing.T) {
	_, err := fakecri.New(fakecri.Config{Handlers: []string{"runc"}})
	assert.ErrorContains(t, err, "Config.Handlers")
}
