package fakecri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// leftBehind returns the statuses of a pod of another agent.
func leftBehind() (*runtimeapi.PodSandboxStatus, []*runtimeapi.ContainerStatus) {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	labels := map[string]string{"io.kubernetes.pod.uid": "u"}
	container := func(id, name string, state runtimeapi.ContainerState) *runtimeapi.ContainerStatus {
		return &runtimeapi.ContainerStatus{
			Id: id, Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: 3}, State: state, CreatedAt: created, StartedAt: created,
			Image: &runtimeapi.ImageSpec{Image: "img:1"}, ImageRef: "img@sha256:1", ImageId: "sha256:2", Labels: labels,
			LogPath: "/logs/ns_pod_u/" + name + "/3.log", Resources: &runtimeapi.ContainerResources{},
		}
	}
	over := container("c2", "job", runtimeapi.ContainerState_CONTAINER_EXITED)
	over.FinishedAt, over.ExitCode, over.Reason = created, 2, "Error"
	return &runtimeapi.PodSandboxStatus{
			Id: "s1", State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: created, Labels: labels,
			Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "ns", Uid: "u", Attempt: 1},
			Network:  &runtimeapi.PodSandboxNetworkStatus{Ip: "10.9.9.9"},
			Linux:    &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}},
		}, []*runtimeapi.ContainerStatus{
			container("c1", "web", runtimeapi.ContainerState_CONTAINER_RUNNING), over,
			container("c3", "lost", runtimeapi.ContainerState_CONTAINER_UNKNOWN),
		}
}

func TestPutObjectsAreReturnedUnchanged(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox, containers := leftBehind()
		require.NoError(n, n.Put(sandbox, containers...))
		got, err := n.PodSandboxStatus(n.ctx, "s1", false)
		require.NoError(n, err)
		assert.Equal(n, sandbox.String(), got.Status.String())
		for _, want := range containers {
			got, err := n.ContainerStatus(n.ctx, want.Id, false)
			require.NoError(n, err)
			got.Status.User, got.Status.StopSignal = nil, want.StopSignal // which are always set
			assert.Equal(n, want.String(), got.Status.String())
		}
		list, err := n.ListContainers(n.ctx, &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": "u"}})
		require.NoError(n, err)
		assert.Len(n, list, 3)
		assert.Equal(n, "/logs/ns_pod_u", n.Sandboxes("u")[0].Config.LogDirectory)
		assert.Equal(n, "web/3.log", n.Containers("u")[0].Config.LogPath)
	})
}

func TestPutObjectsBehaveLikeOthers(t *testing.T) {
	cfg := fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"web": {StopDelay: 2 * time.Second}}}}
	on(t, cfg, func(n *node) {
		sandbox, containers := leftBehind()
		require.NoError(n, n.Put(sandbox, containers...))
		_, err := n.RunPodSandbox(n.ctx, &runtimeapi.PodSandboxConfig{Metadata: sandbox.Metadata}, "")
		hasCode(n, codes.FailedPrecondition, err)
		begun := time.Now()
		require.NoError(n, n.StopContainer(n.ctx, "c1", 10))
		assert.Equal(n, 2*time.Second, time.Since(begun))
		require.NoError(n, n.StopContainer(n.ctx, "c3", 10), "the container does not run")
		require.NoError(n, n.RemovePodSandbox(n.ctx, "s1"))
		assert.Empty(n, n.Containers(""))
		require.NoError(n, n.Put(sandbox, containers...), "its IDs and names can be used again")
	})
}

func TestContainersMayBePutIntoAnExistingSandbox(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id := n.sandbox("a")
		_, containers := leftBehind()
		require.NoError(n, n.Put(&runtimeapi.PodSandboxStatus{Id: id}, containers[0]))
		assert.Len(n, n.Sandboxes("a"), 1)
		require.NoError(n, n.Exit("a", "web", 7))
		assert.EqualValues(n, 7, n.Containers("a")[0].ExitCode)
	})
}

func TestInvalidPutsAreRejected(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox, containers := leftBehind()
		assert.ErrorContains(n, n.Put(nil), "ID is empty")
		assert.ErrorContains(n, n.Put(sandbox, containers[0], containers[0]), `container ID "c1" is taken or empty`)
		assert.ErrorContains(n, n.Put(sandbox, &runtimeapi.ContainerStatus{}), `container ID "" is taken or empty`)
		sandbox.Annotations = map[string]string{fakecri.AnnotationBehavior: "{"}
		assert.ErrorContains(n, n.Put(sandbox, containers[0]), "put container c1: ")
		assert.Empty(n, n.Sandboxes(""), "nothing was put")
		require.NoError(n, n.Put(&runtimeapi.PodSandboxStatus{Id: "bare"}, &runtimeapi.ContainerStatus{Id: "bare"}), "only IDs are set")
	})
}

func TestAContainerThatLingersTakesItsTimeToExit(t *testing.T) {
	cfg := fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"web": {IgnoreTERM: true}}}}
	on(t, cfg, func(n *node) {
		id, _ := n.started()
		pod := n.Containers("")[0].Pod
		require.NoError(n, n.Linger(pod, "web", 5*time.Second))
		begun := time.Now()
		require.NoError(n, n.StopContainer(n.ctx, id, 30))
		assert.Equal(n, 5*time.Second, time.Since(begun))
		assert.EqualValues(n, 143, n.look(id).ExitCode)
		assert.ErrorContains(n, n.Linger(pod, "web", time.Second), "no container web")
	})
}
