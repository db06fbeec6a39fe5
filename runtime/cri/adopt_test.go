package cri_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// The pods of testdata/kubelet-1.36.json.
const (
	shopUID    types.UID = "5f1c0a52-6d0b-4f0e-9a2e-0b6a3f1d2c44"
	leavingUID types.UID = "0c9be0a4-1f8e-4a55-8c6b-7d6f1d9b3e10"
)

// shopPod returns the spec that pod shop was created from.
func shopPod() *v1.Pod {
	c := func(name, image string) v1.Container {
		return v1.Container{
			Name: name, Image: image, ImagePullPolicy: v1.PullIfNotPresent,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
		}
	}
	web := c("test_container", "foo/image:v1")
	web.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	web.Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP}}
	web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/bye", "now"}}}}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", Namespace: "prod", UID: shopUID, Labels: map[string]string{"app": "shop"},
			Annotations: map[string]string{
				"example.com/note": "kept", "kubernetes.io/config.seen": "2026-01-01T09:59:59.000000000Z", "kubernetes.io/config.source": "api",
			},
		},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(45)), DNSPolicy: v1.DNSNone,
			InitContainers: []v1.Container{c("setup", "bar")},
			Containers:     []v1.Container{web, c("foo", "bar")},
		},
	}
}

// kubeletMade returns a fake with the sandboxes and containers of the dump.
func kubeletMade(t *testing.T) *fakeCRI {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "kubelet-1.36.json"))
	require.NoError(t, err)
	var dump struct {
		Sandboxes  []json.RawMessage
		Containers []struct {
			Sandbox string
			Status  json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(raw, &dump))
	f := newFake()
	var sandboxes []*runtimeapi.PodSandboxStatus
	for _, raw := range dump.Sandboxes {
		var s runtimeapi.PodSandboxStatus
		require.NoError(t, protojson.Unmarshal(raw, &s))
		sandboxes = append(sandboxes, &s)
	}
	containers := map[string][]*runtimeapi.ContainerStatus{}
	for _, c := range dump.Containers {
		var s runtimeapi.ContainerStatus
		require.NoError(t, protojson.Unmarshal(c.Status, &s))
		containers[c.Sandbox] = append(containers[c.Sandbox], &s)
	}
	for _, s := range sandboxes {
		f.put(s, containers[s.Id]...)
	}
	f.has("bar:latest", "foo/image:v1")
	return f
}

// A node that a kubelet managed is adopted without changing its running pods.
func TestPodsOfAKubeletAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(1767268920, 0).Add(time.Hour))) // after the last time in the dump
		f := kubeletMade(t)
		rt, seen := f.engine(t, cri.Config{})
		pods, err := rt.Pods(t.Context())
		require.NoError(t, err)
		assert.Len(t, pods, 2)

		res := syncs(t, rt, shopPod())
		assert.Empty(t, res.Actions)
		assert.True(t, res.RetryAt.IsZero())
		assert.Empty(t, f.did(), "the pod is not changed")
		assert.Empty(t, seen.take())

		st, err := rt.PodStatus(t.Context(), shopUID)
		require.NoError(t, err)
		assert.Equal(t, "shop", st.Name)
		require.Len(t, st.Containers, 4)
		web := st.Container("test_container")
		assert.Equal(t, "fake://c03", web.ID)
		assert.EqualValues(t, 3, web.RestartCount)
		assert.EqualValues(t, 0x8e45cbd0, web.Hash) // rt-29
		assert.EqualValues(t, 0x11a6d6d6, st.Container("foo").Hash)
		assert.Equal(t, "foo/image:v1", web.Image)
		assert.Equal(t, "/var/log/pods/prod_shop_"+string(shopUID)+"/test_container/3.log", web.LogPath)

		// The container crashes under this engine. The next instance is created in the
		// existing sandbox, and init containers do not run again.
		f.exits("test_container", 1)
		syncs(t, rt, shopPod())
		next := f.newest("test_container")
		assert.Equal(t, []string{"ImageStatus foo/image:v1", "CreateContainer test_container", "StartContainer test_container"}, f.did())
		assert.Equal(t, "5a2", next.SandboxID)
		assert.EqualValues(t, 4, next.Config.Metadata.Attempt)
		assert.Equal(t, "4", next.Config.Annotations["io.kubernetes.container.restartCount"])
		assert.Equal(t, "test_container/4.log", next.Config.LogPath)
		assert.Empty(t, syncs(t, rt, shopPod()).Actions)
	})
}

// A changed image changes the container's hash, also if a kubelet created it (rt-30).
func TestAContainerOfAKubeletIsReplacedWhenItsImageChanges(t *testing.T) {
	f := kubeletMade(t)
	f.has("bar:2")
	rt, _ := f.engine(t, cri.Config{})
	pod := shopPod()
	pod.Spec.Containers[1].Image = "bar:2"
	syncs(t, rt, pod)
	assert.EqualValues(t, 1, f.newest("foo").Config.Metadata.Attempt)
	assert.Equal(t, fakecri.Running, f.newest("test_container").State)
	assert.Equal(t, "c03", f.newest("test_container").ID)
}

// A pod without a cached spec is stopped as its annotations specify
// (rt-15, rt-107 … rt-109).
func TestPodsOfAKubeletAreStoppedByTheirAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := kubeletMade(t)
		rt, seen := f.engine(t, cri.Config{})
		ran := map[string][]string{}
		f.exec = func(_ context.Context, name string, cmd []string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			ran[name] = cmd
			return nil
		}
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: shopUID}))
		assert.Equal(t, map[string][]string{"test_container": {"/bin/bye", "now"}}, ran)
		for _, c := range f.containers() {
			switch c.ID {
			case "c03", "c04":
				assert.Equal(t, []int64{45}, f.graces[c.ID], c.ID)
			default:
				assert.Empty(t, f.graces[c.ID], c.ID)
			}
		}
		assert.ElementsMatch(t, []string{
			"Normal Killing spec.containers{test_container}: Stopping container test_container",
			"Normal Killing spec.containers{foo}: Stopping container foo",
		}, seen.take())
		assert.Equal(t, []string{"foo"}, f.running(), "pod leaving is not changed")

		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: leavingUID}))
		assert.Equal(t, []int64{5}, f.stops("foo"), "the deletion grace period in the annotations")
		assert.Empty(t, f.running())
	})
}

// Conversely, the labels and annotations that this engine writes on a pod are
// identical to those that a kubelet wrote on the same pod, and stored under the
// same keys (4.2).
func TestLabelsAndAnnotationsAreTheKubelets(t *testing.T) {
	theirs := kubeletMade(t)
	f := newFake()
	f.has("bar:latest", "foo/image:v1")
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()}})
	require.NoError(t, err)
	pod := shopPod()
	syncs(t, rt, pod)
	f.exits("setup", 0)
	syncs(t, rt, pod)

	require.Len(t, f.sandboxes(), 1)
	assert.Equal(t, theirs.sandboxes()[1].Config.Labels, f.sandboxes()[0].Config.Labels)
	assert.Equal(t, theirs.sandboxes()[1].Config.Annotations, f.sandboxes()[0].Config.Annotations)
	assert.Equal(t, filepath.Base(theirs.sandboxes()[1].Config.LogDirectory), filepath.Base(f.sandboxes()[0].Config.LogDirectory))
	require.Len(t, f.containers(), 3)
	compared := 0
	for _, their := range theirs.containers() {
		if !slices.Contains([]string{"c01", "c03", "c04"}, their.ID) {
			continue
		}
		compared++
		name := their.Name
		our := f.newest(name)
		require.NotNil(t, our, name)
		first := maps.Clone(their.Config.Annotations)
		first["io.kubernetes.container.restartCount"] = "0"
		assert.Equal(t, their.Config.Labels, our.Config.Labels, name)
		assert.Equal(t, first, our.Config.Annotations, name)
		assert.Equal(t, name+"/0.log", our.Config.LogPath)
	}
	assert.Equal(t, 3, compared)
}

// Containers can be created in a sandbox that another agent created, whatever
// namespace options it has: containerd 2 compares a container with the sandbox
// configuration in the call, which this engine sends.
func TestContainersInASandboxOfAnotherAgent(t *testing.T) {
	node := &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
	for _, spoken := range []bool{false, true} {
		for _, options := range []*runtimeapi.NamespaceOption{nil, {}, {UsernsOptions: node}} {
			f := newFake()
			f.has("img:1")
			rt, _ := f.engine(t, cri.Config{})
			pod := podOf(container("web"))
			pod.Spec.SecurityContext = nil
			if spoken {
				pod.Spec.SecurityContext = &v1.PodSecurityContext{}
			}
			syncs(t, rt, pod)
			theirs := f.statusOf(f.sandboxes()[0].ID)
			theirs.Linux.Namespaces.Options = options
			f = newFake()
			f.has("img:1")
			f.put(theirs)
			rt, _ = f.engine(t, cri.Config{})
			syncs(t, rt, pod)
			require.Equal(t, []string{"web"}, f.running(), "%t %v", spoken, options)
			require.Len(t, f.sandboxes(), 1)
		}
	}
}
