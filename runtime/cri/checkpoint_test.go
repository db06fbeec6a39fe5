package cri_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A checkpointer records the requests for checkpoints of pods.
type checkpointer struct {
	*fakeCRI
	requests []*runtimeapi.CheckpointPodRequest
	limit    time.Duration // of the last one
	fail     error
	hang     bool
}

func (c *checkpointer) CheckpointPod(ctx context.Context, req *runtimeapi.CheckpointPodRequest) error {
	c.requests = append(c.requests, req)
	at, _ := ctx.Deadline()
	c.limit = time.Until(at)
	if c.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.fail
}

// onCheckpointer calls test with a pod that has containers of all kinds, of which those that a checkpoint contains run.
func onCheckpointer(t *testing.T, test func(t *testing.T, c *checkpointer, rt *cri.Runtime, pod *v1.Pod)) {
	synctest.Test(t, func(t *testing.T) {
		c := &checkpointer{fakeCRI: newFake()}
		c.has("img:1")
		rt, _ := c.engine(t, cri.Config{Runtime: c})
		pod := podOf(container("web"), container("log"))
		pod.Spec.InitContainers = []v1.Container{container("setup"), sidecar("proxy")}
		syncs(t, rt, pod)
		require.NoError(t, c.mem.Exit("u-1", "setup", 0))
		syncs(t, rt, pod)
		syncs(t, rt, pod)
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}}
		syncs(t, rt, pod)
		require.Equal(t, []string{"debug", "log", "proxy", "web"}, c.running())
		test(t, c, rt, pod)
	})
}

func TestACheckpointHasTheSidecarsAndRegularContainers(t *testing.T) {
	onCheckpointer(t, func(t *testing.T, c *checkpointer, rt *cri.Runtime, pod *v1.Pod) {
		require.NoError(t, rt.CheckpointPod(t.Context(), pod, "/checkpoint"))
		require.Len(t, c.requests, 1)
		assert.Equal(t, c.sandboxes()[0].ID, c.requests[0].PodSandboxId)
		assert.Equal(t, []string{c.newest("proxy").ID, c.newest("web").ID, c.newest("log").ID}, c.requests[0].ContainerIds)
		assert.Equal(t, "/checkpoint", c.requests[0].OutputPath)
		assert.Empty(t, c.requests[0].Options)
	})
}

func TestACheckpointOfAPodThatDoesNotRunIsRejected(t *testing.T) {
	onCheckpointer(t, func(t *testing.T, c *checkpointer, rt *cri.Runtime, pod *v1.Pod) {
		require.ErrorContains(t, rt.CheckpointPod(t.Context(), pod, "checkpoint"), "not an absolute path")
		require.Error(t, rt.CheckpointPod(t.Context(), nil, "/checkpoint"))
		other := pod.DeepCopy()
		other.Name, other.UID = "other", "u-2"
		require.EqualError(t, rt.CheckpointPod(t.Context(), other, "/checkpoint"), "cri: checkpoint pod prod/other: container proxy does not run")
		other.Spec = v1.PodSpec{}
		require.EqualError(t, rt.CheckpointPod(t.Context(), other, "/checkpoint"), "cri: checkpoint pod prod/other: it has no containers")
		require.NoError(t, c.mem.Exit("u-1", "log", 1))
		require.EqualError(t, rt.CheckpointPod(t.Context(), pod, "/checkpoint"), "cri: checkpoint pod prod/web: container log does not run")
		assert.Empty(t, c.requests)
	})
}

// The containers are paused meanwhile.
func TestACheckpointHasADeadline(t *testing.T) {
	onCheckpointer(t, func(t *testing.T, c *checkpointer, rt *cri.Runtime, pod *v1.Pod) {
		require.NoError(t, rt.CheckpointPod(t.Context(), pod, "/checkpoint"))
		assert.Equal(t, 15*time.Second, c.limit)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		require.NoError(t, rt.CheckpointPod(ctx, pod, "/checkpoint"))
		assert.Equal(t, 3*time.Minute, c.limit)

		c.hang = true
		require.ErrorIs(t, rt.CheckpointPod(t.Context(), pod, "/checkpoint"), runtime.ErrUnavailable)
		require.ErrorIs(t, rt.CheckpointPod(ctx, pod, "/checkpoint"), context.DeadlineExceeded)
	})
}

func TestARuntimeMayHaveNoCheckpoints(t *testing.T) {
	onCheckpointer(t, func(t *testing.T, c *checkpointer, rt *cri.Runtime, pod *v1.Pod) {
		c.fail = status.Error(codes.Unimplemented, "unknown method CheckpointPod")
		err := rt.CheckpointPod(t.Context(), pod, "/checkpoint")
		require.ErrorIs(t, err, runtime.ErrUnsupported)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "pod prod/web")
		_, err = os.Stat("/checkpoint")
		require.Error(t, err)
	})
}
