package fakecri_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestContainersGoOnWithoutTheDaemon(t *testing.T) {
	on(t, does(fake.Behavior{Exit: &fake.Exit{After: 10 * time.Second, Code: 3}}), func(n *node) {
		id, _ := n.started()
		n.Down()
		_, err := n.ContainerStatus(n.ctx, id, false)
		hasCode(n, codes.Unavailable, err)
		_, err = n.ListContainers(n.ctx, nil)
		hasCode(n, codes.Unavailable, err)
		assert.Equal(n, fakecri.Running, n.Containers("a")[0].State, "Containers works without the daemon")
		time.Sleep(time.Minute)
		n.Up()
		n.exited(id, 3, "Error", 50*time.Second)
	})
}

func TestCallsUnderWayFailWithTheDaemon(t *testing.T) {
	cfg := does(fake.Behavior{StartDelay: time.Minute})
	cfg.Behaviors.Containers["deaf"] = fake.Behavior{IgnoreTERM: true}
	on(t, cfg, func(n *node) {
		sandbox := n.sandbox("a")
		slow, deaf := n.created(sandbox, "a", "web", 0), n.created(sandbox, "a", "deaf", 0)
		require.NoError(n, n.StartContainer(n.ctx, deaf))
		ends := make(chan error, 2)
		go func() { ends <- n.StartContainer(n.ctx, slow) }()
		go func() { ends <- n.StopContainer(n.ctx, deaf, 30) }()
		synctest.Wait()
		n.Down()
		for range 2 {
			hasCode(n, codes.Unavailable, <-ends)
		}
		n.Up()
		time.Sleep(time.Hour)
		n.runs(deaf)
		assert.Equal(n, runtimeapi.ContainerState_CONTAINER_CREATED, n.look(slow).State)
		require.NoError(n, n.StartContainer(n.ctx, slow))
	})
}

func TestNothingRunsAfterAReboot(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id, sandbox := n.started()
		created, done := n.created(sandbox, "a", "new", 0), n.created(sandbox, "a", "done", 0)
		require.NoError(n, n.StartContainer(n.ctx, done))
		require.NoError(n, n.Exit("a", "done", 4))
		time.Sleep(time.Second)
		n.Reboot()
		n.exited(id, 255, "Unknown", 0)
		n.exited(done, 4, "Error", time.Second)
		assert.Equal(n, runtimeapi.ContainerState_CONTAINER_CREATED, n.look(created).State)
		resp, err := n.PodSandboxStatus(n.ctx, sandbox, false)
		require.NoError(n, err)
		assert.Equal(n, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, resp.Status.State)
		assert.Empty(n, resp.Status.Network.Ip)
		n.sandbox("b")
	})
}
