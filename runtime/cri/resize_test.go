package cri_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// resizing is a fake that supports updates of resources.
type resizing struct {
	*fakeCRI
	used    uint64
	refuses error
}

func (f *resizing) UpdateContainerResources(ctx context.Context, id string, res *runtimeapi.ContainerResources) error {
	if f.refuses != nil {
		return f.refuses
	}
	f.note(fmt.Sprintf("Update %s shares=%d quota=%d memory=%d", f.nameOf(id), res.Linux.CpuShares, res.Linux.CpuQuota, res.Linux.MemoryLimitInBytes>>20))
	return f.RuntimeService.UpdateContainerResources(ctx, id, res)
}

func (f *resizing) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	f.note(fmt.Sprintf("UpdatePod shares=%d quota=%d memory=%d",
		req.Resources.CpuShares, req.Resources.CpuQuota, req.Resources.MemoryLimitInBytes>>20))
	return f.RuntimeService.UpdatePodSandboxResources(ctx, req)
}

func (f *resizing) ContainerStats(context.Context, string) (*runtimeapi.ContainerStats, error) {
	return &runtimeapi.ContainerStats{Memory: &runtimeapi.MemoryUsage{UsageBytes: &runtimeapi.UInt64Value{Value: f.used}}}, nil
}

// sized returns a container with these requests and limits: "100m/64Mi" each.
func sized(name, cpuRequest, memoryRequest, cpuLimit, memoryLimit string) v1.Container {
	c := container(name)
	list := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	c.Resources = v1.ResourceRequirements{Requests: list(cpuRequest, memoryRequest), Limits: list(cpuLimit, memoryLimit)}
	return c
}

func TestARunningContainerIsResized(t *testing.T) { // al-16, al-17, al-21
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	pod := podOf(sized("web", "100m", "64Mi", "200m", "128Mi"), sized("db", "100m", "64Mi", "200m", "128Mi"))
	syncs(t, rt, pod)
	f.did()
	assert.Empty(t, syncs(t, rt, pod).Actions)

	pod = pod.DeepCopy()
	pod.Spec.Containers[0] = sized("web", "300m", "64Mi", "400m", "256Mi")
	pod.Spec.Containers[1] = sized("db", "50m", "32Mi", "100m", "64Mi")
	res := syncs(t, rt, pod)
	require.Len(t, res.Actions, 1)
	assert.Equal(t, runtime.Action{Kind: runtime.ResizePodInPlace, Target: "web_prod"}, res.Actions[0])
	assert.Equal(t, []string{
		"UpdatePod shares=204 quota=40000 memory=320",
		"Update db shares=102 quota=20000 memory=64", // what gets less comes first
		"Update web shares=102 quota=20000 memory=256",
		"UpdatePod shares=204 quota=40000 memory=320", // the memory request, which the kernel has not
		"UpdatePod shares=204 quota=50000 memory=320",
		"UpdatePod shares=358 quota=50000 memory=320",
		"Update db shares=51 quota=10000 memory=64",
		"Update web shares=307 quota=40000 memory=256",
	}, f.did())
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	for _, c := range st.Containers {
		want := pod.Spec.Containers[0]
		if c.Name == "db" {
			want = pod.Spec.Containers[1]
		}
		assert.True(t, c.Resources.Limits.Memory().Equal(*want.Resources.Limits.Memory()), c.Name)
		assert.True(t, c.Resources.Requests.Cpu().Equal(*want.Resources.Requests.Cpu()), c.Name)
	}
	assert.Empty(t, syncs(t, rt, pod).Actions, "a completed resize is not repeated")
	assert.Equal(t, []string{"db", "web"}, f.running())
}

func TestMemoryInUseIsNotTakenAway(t *testing.T) { // al-18, al-20
	f := &resizing{fakeCRI: newFake(), used: 100 << 20}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	pod := podOf(sized("web", "100m", "64Mi", "200m", "128Mi"))
	syncs(t, rt, pod)
	f.did()
	pod = pod.DeepCopy()
	pod.Spec.Containers[0] = sized("web", "100m", "64Mi", "200m", "64Mi")
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.ErrorContains(t, err, `cannot decrease memory limits: attempting to set container \"web\" memory limit (67108864) below current usage (104857600)`)
	assert.Equal(t, runtime.ResizePodInPlace, res.Actions[0].Kind)
	assert.Empty(t, f.did(), "no part of the resize is applied")
	f.used = 10 << 20
	syncs(t, rt, pod)
	assert.Contains(t, f.did(), "Update web shares=102 quota=20000 memory=64", "the resize is retried")
}

func TestAResizeThatTheRuntimeRefusesIsTriedAgain(t *testing.T) { // al-20
	f := &resizing{fakeCRI: newFake(), refuses: errors.New("busy")}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	pod := podOf(sized("web", "100m", "64Mi", "200m", "128Mi"))
	syncs(t, rt, pod)
	pod = pod.DeepCopy()
	pod.Spec.Containers[0] = sized("web", "100m", "64Mi", "300m", "128Mi")
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.ErrorContains(t, err, "busy")
	f.refuses = nil
	assert.Len(t, syncs(t, rt, pod).Actions, 1)
	assert.Empty(t, syncs(t, rt, pod).Actions)
}

func TestAResizeThatRequiresARestart(t *testing.T) { // al-15
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	web := sized("web", "100m", "64Mi", "200m", "128Mi")
	web.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
	pod := podOf(web)
	syncs(t, rt, pod)
	f.did()
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Resources.Limits[v1.ResourceMemory] = resource.MustParse("256Mi")
	syncs(t, rt, pod)
	assert.Equal(t, []string{"StopContainer web", "UpdatePod shares=102 quota=20000 memory=256", "ImageStatus img:1", "CreateContainer web", "StartContainer web"}, f.did())
	assert.EqualValues(t, 256<<20, f.newest("web").Config.Linux.Resources.MemoryLimitInBytes)
	assert.Empty(t, syncs(t, rt, pod).Actions)
}

// On cgroup v1 a container cannot start with a higher quota than its pod's.
func TestThePodHasRoomBeforeAContainerStartsWithMore(t *testing.T) { // al-15, al-16, cm-43
	for _, tc := range []struct {
		name   string
		policy v1.ResourceResizeRestartPolicy
		ends   bool // by itself, before it is resized
		limit  string
		wanted []string
	}{
		{"stopped for it", v1.RestartContainer, false, "400m", []string{
			"StopContainer web", "cgroup cpu limit 400m", "CreateContainer web", "StartContainer web",
		}},
		{"ended meanwhile", v1.NotRequired, true, "400m", []string{"cgroup cpu limit 400m", "CreateContainer web", "StartContainer web"}},
		{"with less", v1.RestartContainer, false, "150m", []string{
			"StopContainer web", "cgroup cpu limit 150m", "CreateContainer web", "StartContainer web",
		}},
		{"with the same", v1.NotRequired, true, "200m", []string{"CreateContainer web", "StartContainer web"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &resizing{fakeCRI: newFake()}
			f.has("img:1")
			rt := engineOver(t, f, cri.Config{Providers: cri.Providers{Cgroups: cgroupsFunc(func(name v1.ResourceName, after v1.ResourceRequirements) error {
				limit := after.Limits[v1.ResourceCPU]
				f.note(fmt.Sprintf("cgroup %s limit %s", name, &limit))
				return nil
			})}})
			web := sized("web", "100m", "64Mi", "200m", "128Mi")
			web.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU, RestartPolicy: tc.policy}}
			pod := podOf(web)
			syncs(t, rt, pod)
			f.did()
			if tc.ends {
				f.exits("web", 1)
			}
			pod = pod.DeepCopy()
			pod.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] = resource.MustParse(tc.limit)
			syncs(t, rt, pod)
			did := slices.DeleteFunc(f.did(), func(call string) bool {
				return strings.HasPrefix(call, "UpdatePod ") || strings.HasPrefix(call, "ImageStatus ")
			})
			assert.Equal(t, tc.wanted, did)
			assert.Empty(t, syncs(t, rt, pod).Actions, "a completed resize is not repeated")
		})
	}
}

// cgroupsFunc implements cri.Cgroups with a function that is called for Resize.
type cgroupsFunc func(v1.ResourceName, v1.ResourceRequirements) error

func (cgroupsFunc) CgroupParent(*v1.Pod) string { return "" }

func (f cgroupsFunc) Resize(_ context.Context, _ *v1.Pod, name v1.ResourceName, after v1.ResourceRequirements) error {
	return f(name, after)
}

// resized returns the request and the limit of a resource.
func resized(name v1.ResourceName, after v1.ResourceRequirements) string {
	request, limit := after.Requests[name], after.Limits[name]
	return fmt.Sprintf("%s %s/%s", name, &request, &limit)
}

func TestAPodIsResizedAsAWhole(t *testing.T) { // al-14, al-16, al-17, cm-33
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	var cgroup []string
	cfg := cri.Config{Providers: cri.Providers{Cgroups: cgroupsFunc(func(name v1.ResourceName, after v1.ResourceRequirements) error {
		cgroup = append(cgroup, resized(name, after))
		return nil
	})}}
	rt := engineOver(t, f, cfg)
	pod := podOf(sized("web", "100m", "64Mi", "", ""))
	pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	syncs(t, rt, pod)
	f.did()
	assert.Empty(t, syncs(t, rt, pod).Actions)
	pod = pod.DeepCopy()
	pod.Spec.Resources.Limits[v1.ResourceCPU] = resource.MustParse("2")
	assert.Len(t, syncs(t, rt, pod).Actions, 1)
	assert.Equal(t, []string{"cpu 100m/2"}, cgroup)
	assert.Equal(t, []string{"UpdatePod shares=102 quota=200000 memory=0", "Update web shares=102 quota=200000 memory=0"}, f.did(),
		"a container without a limit has the pod's")
	assert.Empty(t, syncs(t, rt, pod).Actions, "a completed resize is not repeated")

	pod = pod.DeepCopy()
	pod.Spec.Resources.Limits[v1.ResourceCPU] = resource.MustParse("1")
	assert.Len(t, syncs(t, rt, pod).Actions, 1)
	assert.Contains(t, f.did(), "Update web shares=102 quota=100000 memory=0", "the limit that it was given is not its own")
	assert.Empty(t, syncs(t, rt, pod).Actions)
}

// Resources of the pod as a whole can be added while it runs.
func TestPodLevelResourcesAreAdded(t *testing.T) { // al-14, al-16
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	var cgroup []string
	rt := engineOver(t, f, cri.Config{Providers: cri.Providers{Cgroups: cgroupsFunc(func(name v1.ResourceName, after v1.ResourceRequirements) error {
		cgroup = append(cgroup, resized(name, after))
		return nil
	})}})
	pod := podOf(sized("web", "100m", "64Mi", "200m", "128Mi"))
	syncs(t, rt, pod)
	assert.Empty(t, syncs(t, rt, pod).Actions)

	pod = pod.DeepCopy()
	pod.Spec.Resources = &v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("150m")}, Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
	}
	assert.Len(t, syncs(t, rt, pod).Actions, 1)
	assert.Equal(t, []string{"cpu 100m/1", "cpu 150m/1"}, cgroup)
	assert.Empty(t, syncs(t, rt, pod).Actions)
	assert.Equal(t, []string{"web"}, f.running())
}

// A container that inherits the limit of its pod is restarted with it if its resizePolicy requires that.
func TestAnInheritedLimitRestartsAContainer(t *testing.T) { // al-14, cm-33
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	web := sized("web", "100m", "64Mi", "", "")
	web.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU, RestartPolicy: v1.RestartContainer}}
	pod := podOf(web)
	pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}}
	syncs(t, rt, pod)
	assert.Empty(t, syncs(t, rt, pod).Actions)
	f.did()

	pod = pod.DeepCopy()
	pod.Spec.Resources.Limits[v1.ResourceMemory] = resource.MustParse("2Gi")
	syncs(t, rt, pod)
	assert.Contains(t, f.did(), "Update web shares=102 quota=100000 memory=2048")

	pod = pod.DeepCopy()
	pod.Spec.Resources.Limits[v1.ResourceCPU] = resource.MustParse("2")
	var kinds []runtime.ActionKind
	for _, a := range syncs(t, rt, pod).Actions {
		kinds = append(kinds, a.Kind)
	}
	assert.Contains(t, kinds, runtime.KillContainer)
	assert.Contains(t, kinds, runtime.StartContainer)
	assert.Empty(t, syncs(t, rt, pod).Actions)
}

// A pod that another agent created, without a checkpoint, is compared with the
// resources that its runtime reports, and resized only if they differ.
func TestAnAdoptedPodIsNotResizedForNothing(t *testing.T) { // rt-13
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	pod := podOf(sized("web", "333m", "", "1500m", "128Mi"))
	syncs(t, engineOver(t, f, cri.Config{}), pod)
	rt := engineOver(t, f, cri.Config{})
	f.did()
	assert.Empty(t, syncs(t, rt, pod).Actions)
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Resources.Limits[v1.ResourceMemory] = resource.MustParse("256Mi")
	assert.Len(t, syncs(t, rt, pod).Actions, 1)
	assert.Empty(t, syncs(t, rt, pod).Actions)
}

// engineOver returns an engine over f, with its files in a directory of its own.
func engineOver(t *testing.T, f *resizing, cfg cri.Config) *cri.Runtime {
	t.Helper()
	cfg.Name, cfg.Runtime, cfg.Images = "fake", f, f.fakeCRI
	return newRuntime(t, cfg)
}

func TestARuntimeThatCantResizeIsAskedOnce(t *testing.T) { // al-20
	f := &resizing{fakeCRI: newFake(), refuses: status.Error(codes.Unimplemented, "no such method")}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{})
	pod := podOf(sized("web", "100m", "64Mi", "200m", "128Mi"))
	syncs(t, rt, pod)
	for _, limit := range []string{"300m", "400m"} {
		pod = pod.DeepCopy()
		pod.Spec.Containers[0] = sized("web", "100m", "64Mi", limit, "128Mi")
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorIs(t, err, runtime.ErrUnsupported, "reported once")
		assert.Empty(t, syncs(t, rt, pod).Actions, "the next sync does not try again")
	}
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	assert.Equal(t, "200m", st.Containers[0].Resources.Limits.Cpu().String(), "the resize is not complete")
}

// An owning is a resource manager that gives the container web exclusive CPUs.
type owning struct{ managers }

func (*owning) ExclusiveCPUs(*v1.Pod) []string { return []string{"web"} }

func TestContainersWithExclusiveCPUsHaveNoQuota(t *testing.T) {
	f := &resizing{fakeCRI: newFake()}
	f.has("img:1")
	rt := engineOver(t, f, cri.Config{Providers: cri.Providers{Managers: new(owning)}})
	pod := podOf(sized("web", "2", "64Mi", "2", "64Mi"), sized("db", "500m", "64Mi", "500m", "64Mi"))
	syncs(t, rt, pod)
	assert.EqualValues(t, -1, f.newest("web").Config.Linux.Resources.CpuQuota)
	assert.EqualValues(t, 50_000, f.newest("db").Config.Linux.Resources.CpuQuota)
	f.did()
	assert.Empty(t, syncs(t, rt, pod).Actions, "a missing quota is not a change")

	pod = pod.DeepCopy()
	pod.Spec.Containers[0] = sized("web", "2", "128Mi", "2", "128Mi")
	syncs(t, rt, pod)
	assert.Equal(t, []string{
		"UpdatePod shares=2560 quota=-1 memory=192",
		"Update web shares=2048 quota=-1 memory=128",
	}, slices.Compact(f.did()))
	assert.Empty(t, syncs(t, rt, pod).Actions)
}
