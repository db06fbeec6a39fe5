//go:build linux

package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestStatsCountTheWholeTree(t *testing.T) {
	n := newNode(t)
	ctx := t.Context()
	s := n.sandbox("pod")
	busy := n.start(s, sh("busy", "head -c 5000 /dev/zero > file; (while :; do :; done) & sleep 1000"))
	n.exited(n.start(s, sh("done", "true")))
	eventually(t, "CPU time is seen", func() bool {
		st, err := n.ContainerStats(ctx, busy)
		require.NoError(t, err)
		return time.Duration(st.GetCpu().GetUsageCoreNanoSeconds().GetValue()) >= 50*time.Millisecond
	})
	st, err := n.ContainerStats(ctx, busy)
	require.NoError(t, err)
	assert.Greater(t, st.GetMemory().GetWorkingSetBytes().GetValue(), uint64(100<<10))
	assert.EqualValues(t, 5000, st.GetWritableLayer().GetUsedBytes().GetValue())

	list, err := n.ListContainerStats(ctx, nil)
	require.NoError(t, err)
	assert.Len(t, list, 1, "running containers only")
	pod, err := n.PodSandboxStats(ctx, s)
	require.NoError(t, err)
	assert.EqualValues(t, 3, pod.GetLinux().GetProcess().GetProcessCount().GetValue())
	assert.GreaterOrEqual(t, pod.GetLinux().GetCpu().GetUsageCoreNanoSeconds().GetValue(), st.GetCpu().GetUsageCoreNanoSeconds().GetValue())
	over := n.sandbox("over")
	require.NoError(t, n.StopPodSandbox(ctx, over))
	pods, err := n.ListPodSandboxStats(ctx, nil)
	require.NoError(t, err)
	if assert.Len(t, pods, 1, "the ready ones") {
		assert.Equal(t, s, pods[0].GetAttributes().GetId())
	}
	_, err = n.PodSandboxStats(ctx, "absent")
	assert.Equal(t, codes.NotFound, status.Code(err))
	fs, err := n.ImageFsInfo(ctx)
	require.NoError(t, err)
	assert.Equal(t, n.dir, fs.GetImageFilesystems()[0].GetFsId().GetMountpoint())
	img, err := n.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: "nginx:1"}, false)
	require.NoError(t, err)
	assert.Equal(t, "nginx:1", img.GetImage().GetId())
}
