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
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

// Both halves together: a provider that is started anew, with a runtime that is, goes on
// where the last one ended, as all that counts is in the cloud.
func TestAProviderThatStartsAnewLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := programs(&fakecloud.Cloud{Latency: 20 * time.Millisecond, Boot: 20 * time.Second, Launch: 2 * time.Second})
		below.Behave("web", fakecloud.Program{After: time.Second, Code: 1, Crashes: 2, Stop: time.Second})
		pod := podOf("a", v1.Container{Image: "web"})
		// live has a provider work on the pod until it is ready, and then some.
		live := func() v1.ContainerStatus {
			p, err := provider.New(provider.Config{Runtime: over(t, below)})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			require.NoError(t, p.CreatePod(ctx, pod))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			said, err := p.GetPodStatus(ctx, pod.Namespace, pod.Name)
			require.NoError(t, err)
			require.True(t, status.IsReady(said), "%+v", said)
			cancel()
			require.NoError(t, <-ended)
			return said.ContainerStatuses[0]
		}
		first := live()
		assert.EqualValues(t, 2, first.RestartCount)
		require.NotNil(t, first.LastTerminationState.Terminated)
		second := live()
		assert.Equal(t, first, second, "the pod was touched, or something about it forgotten")
		machines, err := below.ListMachines(t.Context(), nil)
		require.NoError(t, err)
		assert.Len(t, machines, 1)
	})
}
