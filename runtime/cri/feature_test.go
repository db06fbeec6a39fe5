package cri_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// An able runtime returns the given status and runtime config.
type able struct {
	*fakeCRI
	status     *runtimeapi.StatusResponse
	config     *runtimeapi.RuntimeConfigResponse
	fail       error
	checkpoint *runtimeapi.CheckpointContainerRequest
	update     *runtimeapi.ContainerResources
}

func (a *able) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return a.status, a.fail
}
func (a *able) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return a.config, a.fail
}
func (a *able) CheckpointContainer(_ context.Context, req *runtimeapi.CheckpointContainerRequest) error {
	a.checkpoint = req
	return a.fail
}
func (a *able) UpdateContainerResources(_ context.Context, _ string, res *runtimeapi.ContainerResources) error {
	a.update = res
	return a.fail
}

func (a *able) engine(t *testing.T) *cri.Runtime {
	a.fakeCRI = newFake()
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: a, Images: a.fakeCRI, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: "/logs"}})
	require.NoError(t, err)
	return rt
}

func TestFeaturesAreReadFromTheRuntime(t *testing.T) {
	for name, tc := range map[string]struct {
		response *runtimeapi.StatusResponse
		want     runtime.Features
	}{
		"nothing":        {nil, runtime.Features{Unreported: true}},
		"an old runtime": {&runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}}, runtime.Features{Unreported: true}},
		"handlers": {&runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}},
			{Name: "vm", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}, {Name: "old"}, nil,
		}}, runtime.Features{Unreported: true, Handlers: map[string]runtime.HandlerFeatures{"": {}, "vm": {UserNamespaces: true}, "old": {}}}},
		"features": {&runtimeapi.StatusResponse{Features: &runtimeapi.RuntimeFeatures{
			SupplementalGroupsPolicy: true, UserNamespacesHostNetwork: true, MountOptions: true,
		}}, runtime.Features{SupplementalGroupsPolicy: true, UserNamespacesHostNetwork: true, MountOptions: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&able{status: tc.response}).engine(t).Features(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestACgroupDriverThatIsNotReportedIsUnknown(t *testing.T) {
	driver := func(d runtimeapi.CgroupDriver) *runtimeapi.RuntimeConfigResponse {
		return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: d}}
	}
	for name, tc := range map[string]struct {
		response *runtimeapi.RuntimeConfigResponse
		fail     error
		want     runtime.CgroupDriver
		err      string
	}{
		"systemd":       {response: driver(runtimeapi.CgroupDriver_SYSTEMD), want: runtime.CgroupDriverSystemd},
		"cgroupfs":      {response: driver(runtimeapi.CgroupDriver_CGROUPFS), want: runtime.CgroupDriverCgroupfs},
		"unknown":       {response: driver(7), err: "the cgroup driver is 7"},
		"not Linux":     {response: &runtimeapi.RuntimeConfigResponse{}},
		"unimplemented": {fail: status.Error(codes.Unimplemented, "unknown method RuntimeConfig")},
		"a failure":     {fail: status.Error(codes.Internal, "broken"), err: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&able{config: tc.response, fail: tc.fail}).engine(t).CgroupDriver(t.Context())
			assert.Equal(t, tc.want, got)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestCheckpointsCountInWholeSeconds(t *testing.T) {
	a := new(able)
	rt := a.engine(t)
	require.NoError(t, rt.Checkpoint(t.Context(), "fake://c1", "/c.tar", 1100*time.Millisecond))
	assert.Equal(t, "c1", a.checkpoint.ContainerId)
	assert.Equal(t, "/c.tar", a.checkpoint.Location)
	assert.EqualValues(t, 2, a.checkpoint.Timeout)
	require.NoError(t, rt.Checkpoint(t.Context(), "fake://c1", "/c.tar", 0))
	assert.EqualValues(t, 0, a.checkpoint.Timeout, "the runtime's default")
	require.ErrorContains(t, rt.Checkpoint(t.Context(), "c1", "c.tar", 0), "not an absolute path")
	require.ErrorContains(t, rt.Checkpoint(t.Context(), "c1", "/c.tar", -1), "negative")
	a.fail = status.Error(codes.Unimplemented, "not compiled in")
	require.ErrorIs(t, rt.Checkpoint(t.Context(), "c1", "/c.tar", 0), runtime.ErrUnsupported)
}

func TestResourcesOfAContainerAreUpdated(t *testing.T) {
	a := new(able)
	rt := a.engine(t)
	res := v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")},
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("64Mi")},
	}
	require.NoError(t, rt.UpdateResources(t.Context(), "fake://c1", res))
	assert.EqualValues(t, 512, a.update.Linux.CpuShares)
	assert.EqualValues(t, 200000, a.update.Linux.CpuQuota)
	assert.EqualValues(t, 64<<20, a.update.Linux.MemoryLimitInBytes)
	a.fail = status.Error(codes.Unimplemented, "processes have no limits")
	require.ErrorIs(t, rt.UpdateResources(t.Context(), "fake://c1", res), runtime.ErrUnsupported)
}

func TestTheLogIsWhereTheRuntimeWritesIt(t *testing.T) {
	a := new(able)
	rt := a.engine(t)
	a.has("img:1")
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	path, err := rt.LogPath(t.Context(), "fake://"+a.newest("web").ID)
	require.NoError(t, err)
	assert.Equal(t, a.sandboxes()[0].Config.LogDirectory+"/web/0.log", path)
	a.alter(a.newest("web"), func(s *runtimeapi.ContainerStatus) { s.LogPath = "" })
	_, err = rt.LogPath(t.Context(), "fake://"+a.newest("web").ID)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	_, err = rt.LogPath(t.Context(), "fake://unknown")
	require.ErrorIs(t, err, runtime.ErrNotFound)
}
