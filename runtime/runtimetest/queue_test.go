package runtimetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// queueing returns the runtime of memory with a queue.
func queueing(*testing.T) runtime.Runtime {
	rt, behaviors := memory(), memoryBehaviors()
	rt.Decide = func(_ *v1.Pod, c *v1.Container) *fake.Behavior {
		b := behaviors[c.Image]
		b.QueueDelay = 2 * time.Second
		return &b
	}
	return rt
}

func TestARuntimeThatQueuesStartsKeepsTheContract(t *testing.T) {
	s := bareSuite()
	s.Queued = true
	runtimetest.TestRuntime(t, queueing, s)
}

func TestAQueueThatIsNotDeclaredIsNamed(t *testing.T) {
	out := failing(t, "SyncPodStartsAllContainers", queueing)
	assert.Contains(t, out, "a was created and does not run when SyncPod returns; a runtime that starts containers later sets Suite.Queued")
}

func TestAStartIsQueuedAndCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web", fake.Behavior{QueueDelay: 10 * time.Second, Exit: &fake.Exit{After: time.Minute}})
		pod := newPod("p", "web")
		mustSync(t, rt, pod)
		state := func() runtime.ContainerStatus {
			s, err := rt.PodStatus(t.Context(), "p")
			require.NoError(t, err)
			require.Len(t, s.Containers, 1)
			return s.Containers[0]
		}
		assert.Equal(t, runtime.ContainerCreated, state().State)
		assert.Zero(t, state().StartedAt)
		assert.Empty(t, mustSync(t, rt, pod).Actions)
		_, err := rt.Exec(t.Context(), state().ID, []string{"true"}, 0)
		assert.ErrorContains(t, err, "is not running")
		created := time.Now()
		time.Sleep(11 * time.Second)
		assert.Equal(t, runtime.ContainerRunning, state().State)
		assert.Equal(t, created.Add(10*time.Second), state().StartedAt)
		time.Sleep(time.Minute)
		assert.Equal(t, runtime.ContainerExited, state().State)
		assert.Equal(t, state().StartedAt.Add(time.Minute), state().FinishedAt)

		canceled := newPod("canceled", "web")
		mustSync(t, rt, canceled)
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "canceled", Pod: canceled}))
		assert.Equal(t, created.Add(71*time.Second), time.Now(), "nothing to wait for")
		time.Sleep(time.Minute)
		s, err := rt.PodStatus(t.Context(), "canceled")
		require.NoError(t, err)
		assert.Equal(t, runtime.ContainerExited, s.Containers[0].State)
		assert.EqualValues(t, 137, s.Containers[0].ExitCode)
		assert.Zero(t, s.Containers[0].StartedAt)
	})
}

func TestAQueuedStartIsReplacedIfTheSpecChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web", fake.Behavior{QueueDelay: 10 * time.Second})
		pod := newPod("p", "web")
		mustSync(t, rt, pod)
		pod.Spec.Containers[0].Image = "web:2"
		mustSync(t, rt, pod)
		time.Sleep(time.Minute)
		s, err := rt.PodStatus(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, s.Containers, 2)
		assert.Equal(t, "web:2", s.Containers[0].Image)
		assert.Equal(t, runtime.ContainerRunning, s.Containers[0].State)
		assert.Equal(t, runtime.ContainerExited, s.Containers[1].State)
		assert.Zero(t, s.Containers[1].StartedAt)
	})
}
