package cloud_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/test/cloud"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

func podOf(uid string, containers ...v1.Container) *v1.Pod {
	for i := range containers {
		if containers[i].Name == "" {
			containers[i].Name = "app"
		}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), Containers: containers},
	}
}

func inspect(t *testing.T, rt runtime.Runtime, uid types.UID) *runtime.PodStatus {
	status, err := rt.PodStatus(t.Context(), uid)
	require.NoError(t, err)
	return status
}

func TestInvalidConfigIsAnError(t *testing.T) {
	_, err := cloud.New(cloud.Config{Node: "node"})
	assert.ErrorContains(t, err, "Config.Cloud is nil")
	_, err = cloud.New(cloud.Config{Cloud: new(fakecloud.Cloud)})
	assert.ErrorContains(t, err, "Config.Node is empty")
	_, err = cloud.New(cloud.Config{Cloud: new(fakecloud.Cloud), Node: "node", Backoff: plan.BackoffConfig{Max: -1}})
	assert.ErrorContains(t, err, "Max is negative")
}

func TestAFailedStartDoesNotPreventOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		below.Behave("typo", fake.Behavior{Fail: &fake.Failure{Reason: "ErrImagePull"}})
		rt := over(t, below)
		pod := podOf("a",
			v1.Container{Name: "typo", Image: "typo"},
			v1.Container{Name: "secret", Image: "long", Env: []v1.EnvVar{{Name: "TOKEN", ValueFrom: &v1.EnvVarSource{}}}},
			v1.Container{Name: "disk", Image: "long", VolumeDevices: []v1.VolumeDevice{{Name: "data"}}},
			v1.Container{Name: "fine", Image: "long", Env: []v1.EnvVar{{Name: "COLOUR", Value: "blue"}}},
		)
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		assert.ErrorIs(t, err, cloud.ErrNoImage)
		reasons := map[string]string{}
		for _, a := range res.Actions {
			reasons[a.Target] = a.Reason
		}
		assert.Equal(t, map[string]string{
			"web_default": "", "typo": "ErrImagePull", "secret": "CreateContainerConfigError", "disk": "CreateContainerConfigError", "fine": "",
		}, reasons)
		assert.ErrorContains(t, err, `variable \"TOKEN\"`)
		assert.Len(t, inspect(t, rt, "a").Containers, 1)
	})
}

func TestAnUnavailableCloudIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		rt := over(t, below)
		pod := podOf("a", v1.Container{Image: "long"})
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		below.Fault = func(string, bool) error { return runtime.ErrUnavailable }
		pods, err := rt.Pods(t.Context())
		assert.ErrorIs(t, err, runtime.ErrUnavailable)
		assert.Nil(t, pods)
		_, err = rt.PodStatus(t.Context(), "a")
		assert.ErrorIs(t, err, runtime.ErrUnavailable)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		assert.ErrorIs(t, err, runtime.ErrUnavailable)
		assert.ErrorIs(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "a"}), runtime.ErrUnavailable)
		assert.ErrorIs(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}), runtime.ErrUnavailable)
	})
}

// A process that is still starting must not run after the image was changed.
func TestAnOutdatedStartIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(&fakecloud.Cloud{Launch: time.Minute})
		rt := over(t, below)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: podOf("a", v1.Container{Image: "long"})})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, runtime.ContainerCreated, inspect(t, rt, "a").Container("app").State)

		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf("a", v1.Container{Image: "long-2"})})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		status := inspect(t, rt, "a")
		require.Len(t, status.Containers, 2)
		assert.Equal(t, "long-2", status.Containers[0].Image)
		assert.Equal(t, runtime.ContainerRunning, status.Containers[0].State)
		assert.Equal(t, runtime.ContainerExited, status.Containers[1].State)
	})
}

func TestMachinesOfOtherNodesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(new(fakecloud.Cloud))
		mine := over(t, below)
		theirs, err := cloud.New(cloud.Config{Cloud: below, Node: "other"})
		require.NoError(t, err)
		_, err = mine.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf("a", v1.Container{Image: "long"})})
		require.NoError(t, err)
		pods, err := theirs.Pods(t.Context())
		require.NoError(t, err)
		assert.Empty(t, pods)
		require.NoError(t, theirs.KillPod(t.Context(), runtime.KillRequest{UID: "a"}))
		require.NoError(t, theirs.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }}))
		assert.True(t, inspect(t, mine, "a").Running())
	})
}

func TestAProbeCanHaveItsOwnGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := over(t, programs(new(fakecloud.Cloud)))
		pod := podOf("a", v1.Container{Image: "stubborn", LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: new(int64(5))}})
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		failed := &runtime.ProbeResults{Liveness: map[string]runtime.ProbeResult{inspect(t, rt, "a").Container("app").ID: runtime.ProbeFailure}}
		began := time.Now()
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Probes: failed})
		require.NoError(t, err)
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.EqualValues(t, 1, inspect(t, rt, "a").Container("app").RestartCount)
	})
}

// The resources of a process are not recorded, so it is neither resized nor restarted.
func TestLimitsAreNoReasonToRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := over(t, programs(new(fakecloud.Cloud)))
		pod := podOf("a", v1.Container{Image: "long", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}})
		for range 3 {
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.NoError(t, err)
		}
		assert.Len(t, inspect(t, rt, "a").Containers, 1)
	})
}

func TestACloudWithoutEventsIsListed(t *testing.T) {
	rt, err := cloud.New(cloud.Config{Cloud: struct{ cloud.API }{new(fakecloud.Cloud)}, Node: "node"})
	require.NoError(t, err)
	err = rt.Watch(t.Context(), func(types.UID) {})
	assert.True(t, errors.Is(err, runtime.ErrUnsupported), "%v", err)
}
