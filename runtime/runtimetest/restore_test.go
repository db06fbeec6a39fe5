package runtimetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestARestoredPodContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := metav1.NewTime(time.Now())
		time.Sleep(time.Minute)
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "runs", Image: "web"}, {Name: "waits", Image: "web"}, {Name: "exits", Image: "job"}, {Name: "new", Image: "web"}}},
			Status: v1.PodStatus{
				StartTime: &began, PodIPs: []v1.PodIP{{IP: "10.1.2.3"}},
				ContainerStatuses: []v1.ContainerStatus{
					{
						Name: "runs", ContainerID: "memory://runs-7", RestartCount: 2, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}},
						LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "memory://runs-4", ExitCode: 3, FinishedAt: began}},
					},
					{
						Name: "waits", RestartCount: 5, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
						LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "memory://waits-6", ExitCode: 1, Reason: "Error", StartedAt: began, FinishedAt: metav1.Now()}},
					},
					{Name: "exits", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}}}, // without ID
					{Name: "new", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
				},
			},
		}
		rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
		rt.Behave("job", fake.Behavior{Exit: &fake.Exit{After: 90 * time.Second, Code: 4}})
		unstarted := pod.DeepCopy()
		unstarted.UID, unstarted.Status = "2", v1.PodStatus{}
		assert.False(t, rt.Restore(unstarted))
		assert.True(t, rt.Restore(pod))
		assert.False(t, rt.Restore(pod), "it has the pod")
		pods, err := rt.Pods(t.Context())
		require.NoError(t, err)
		require.Len(t, pods, 1)

		inspect := func() *runtime.PodStatus {
			s, err := rt.PodStatus(t.Context(), "1")
			require.NoError(t, err)
			return s
		}
		s := inspect()
		assert.Equal(t, []string{"10.1.2.3"}, s.IPs)
		assert.Len(t, s.Containers, 4)
		assert.Equal(t, "memory://runs-7", s.Container("runs").ID)
		assert.EqualValues(t, 2, s.Container("runs").RestartCount)
		assert.EqualValues(t, 5, s.Container("waits").RestartCount)
		assert.Equal(t, runtime.ContainerExited, s.Container("waits").State)

		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: s})
		assert.ErrorContains(t, err, "back-off 2m40s restarting failed container=waits pod=web_default", "the other containers are not changed")
		s = inspect()
		assert.Equal(t, "memory://runs-7", s.Container("runs").ID)
		assert.NotNil(t, s.Container("new"))

		time.Sleep(31 * time.Second)
		assert.EqualValues(t, 4, inspect().Container("exits").ExitCode, "90 s after its start")
		time.Sleep(3 * time.Minute)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		s = inspect()
		assert.EqualValues(t, 6, s.Container("waits").RestartCount)
		ids := map[string]bool{}
		for _, c := range s.Containers {
			assert.False(t, ids[c.ID], c.ID)
			ids[c.ID] = true
		}
	})
}

func TestARestoredPodThatHasTerminatedDoesNotRun(t *testing.T) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default", UID: "1"},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "c"}}},
		Status: v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{
			{Name: "c", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no"}}},
		}},
	}
	rt := new(runtimetest.Runtime)
	require.True(t, rt.Restore(pod))
	s, err := rt.PodStatus(t.Context(), "1")
	require.NoError(t, err)
	assert.Equal(t, runtime.SandboxNotReady, s.Sandboxes[0].State)
	c := s.Container("c")
	assert.Equal(t, "Error no", c.Reason+" "+c.Message)
	assert.EqualValues(t, 3, c.ExitCode)
}
