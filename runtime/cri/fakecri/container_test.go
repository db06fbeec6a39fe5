package fakecri_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

func TestAContainerRunsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := fakecri.New(fakecri.Config{Behaviours: fakecri.Behaviours{Containers: map[string]fakecri.Behaviour{"job": {RunFor: time.Minute, ExitCode: 3}}}})
		require.NoError(t, err)
		ctx := context.Background()
		cfg := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "a", Namespace: "n", Uid: "u"}}
		_, err = r.PullImage(ctx, &runtimeapi.ImageSpec{Image: "x"}, nil, cfg)
		require.NoError(t, err)
		s, err := r.RunPodSandbox(ctx, cfg, "")
		require.NoError(t, err)
		c, err := r.CreateContainer(ctx, s, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "job"}, Image: &runtimeapi.ImageSpec{Image: "x"}}, cfg)
		require.NoError(t, err)
		require.NoError(t, r.StartContainer(ctx, c))
		time.Sleep(time.Minute + time.Second)
		st, err := r.ContainerStatus(ctx, c, true)
		require.NoError(t, err)
		require.EqualValues(t, 3, st.Status.ExitCode)
		require.NoError(t, r.RemovePodSandbox(ctx, s))
		require.Empty(t, r.Containers(""))
	})
}
