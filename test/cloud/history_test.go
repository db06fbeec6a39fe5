package cloud_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

// until syncs the pod once a second until ok reports true.
func until(t *testing.T, rt runtime.Runtime, pod *v1.Pod, what string, ok func(*runtime.PodStatus) bool) *runtime.PodStatus {
	for range 600 {
		_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		time.Sleep(time.Second)
		if status := inspect(t, rt, pod.UID); ok(status) {
			return status
		}
	}
	require.Fail(t, "not within ten minutes: "+what)
	return nil
}

func TestACompletedContainerIsNotRunAgainAfterGarbageCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		rt := over(t, below)
		pod := podOf("a", v1.Container{Name: "once", Image: exits(0).Image}, v1.Container{Name: "app", Image: "long"})
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		until(t, rt, pod, "once has exited", func(s *runtime.PodStatus) bool { return s.Container("once").State == runtime.ContainerExited })
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
		require.Nil(t, inspect(t, rt, "a").Container("once"))
		next := over(t, below)
		_, err := next.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		assert.Nil(t, inspect(t, next, "a").Container("once"), "it was started again")

		require.NoError(t, below.Crash(inspect(t, rt, "a").Sandboxes[0].ID))
		until(t, next, pod, "app runs again", func(s *runtime.PodStatus) bool { return s.Running() })
		assert.Nil(t, inspect(t, next, "a").Container("once"), "it was started again on another machine")
	})
}

func TestRestartCountsSurviveMachinesAndProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		rt := over(t, below)
		pod := podOf("a", v1.Container{Image: exits(1).Image})
		until(t, rt, pod, "app was restarted twice", func(s *runtime.PodStatus) bool {
			c := s.Container("app")
			return c.RestartCount == 2 && c.State == runtime.ContainerExited
		})
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
		require.NoError(t, below.Crash(inspect(t, rt, "a").Sandboxes[0].ID))
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{})) // it is kept, it has the history
		rt = over(t, below)
		began := time.Now()
		status := until(t, rt, pod, "app was restarted once more", func(s *runtime.PodStatus) bool { return s.Container("app") != nil })
		assert.EqualValues(t, 3, status.Container("app").RestartCount)
		assert.EqualValues(t, 1, status.Sandboxes[0].Attempt)
		assert.Greater(t, time.Since(began), 5*time.Second, "back-off continues")

		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{})) // the old machine has no processes
		require.Len(t, inspect(t, rt, "a").Sandboxes, 1)
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
		status = until(t, rt, pod, "app was restarted once more", func(s *runtime.PodStatus) bool { return s.Container("app") != nil })
		assert.EqualValues(t, 4, status.Container("app").RestartCount)
	})
}

func TestMachinesOfRemovedPodsAreDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		rt := over(t, below)
		for _, uid := range []string{"gone", "ended", "stays", "runs"} {
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(uid, v1.Container{Image: "long"})})
			require.NoError(t, err)
		}
		for _, uid := range []types.UID{"gone", "ended", "stays"} {
			require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: uid}))
		}
		policy := runtime.GCPolicy{
			MinAge: time.Minute, MaxPerContainer: 1,
			Keep:       func(uid types.UID) bool { return uid != "gone" && uid != "runs" },
			Terminated: func(uid types.UID) bool { return uid == "ended" },
		}
		left := func() map[types.UID]bool {
			require.NoError(t, rt.CollectGarbage(t.Context(), policy))
			pods, err := rt.Pods(t.Context())
			require.NoError(t, err)
			uids := map[types.UID]bool{}
			for _, pod := range pods {
				uids[pod.UID] = true
			}
			return uids
		}
		assert.Len(t, left(), 4, "MinAge has not passed")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, map[types.UID]bool{"stays": true, "runs": true}, left())
	})
}
