package cloud_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

// All state is in the cloud: a new provider over a new runtime continues with the pods.
func TestANewProviderContinuesWithThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(&fakecloud.Cloud{Latency: 20 * time.Millisecond, Boot: 20 * time.Second, Launch: 2 * time.Second})
		below.Behave("web", fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: 1, Crashes: 2}, StopDelay: time.Second})
		pod := podOf("a", v1.Container{Image: "web"})
		// serve runs a provider for two minutes, in which the pod becomes ready.
		serve := func() v1.ContainerStatus {
			p, err := provider.New(provider.Config{Runtime: over(t, below)})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan error, 1)
			go func() { stopped <- p.Run(ctx) }()
			require.NoError(t, p.CreatePod(ctx, pod))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			reported, err := p.GetPodStatus(ctx, pod.Namespace, pod.Name)
			require.NoError(t, err)
			require.True(t, status.IsReady(reported), "%+v", reported)
			cancel()
			require.NoError(t, <-stopped)
			return reported.ContainerStatuses[0]
		}
		first := serve()
		assert.EqualValues(t, 2, first.RestartCount)
		require.NotNil(t, first.LastTerminationState.Terminated)
		second := serve()
		assert.Equal(t, first, second, "the pod was not modified")
		machines, err := below.ListMachines(t.Context(), nil)
		require.NoError(t, err)
		assert.Len(t, machines, 1)
	})
}
