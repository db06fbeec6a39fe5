package emptydir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func spec(medium v1.StorageMedium, sizeLimit string) *volume.Spec {
	source := &v1.EmptyDirVolumeSource{Medium: medium}
	if sizeLimit != "" {
		q := resource.MustParse(sizeLimit)
		source.SizeLimit = &q
	}
	return &volume.Spec{Volume: &v1.Volume{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: source}}}
}

func limited(limits ...string) *v1.Pod {
	pod := new(v1.Pod)
	for _, l := range limits {
		var c v1.Container
		if l != "" {
			c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(l)}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

func TestTheSizeOfMemory(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	withInit := limited("1Mi")
	withInit.Spec.InitContainers = limited("4Mi", "2Mi").Spec.Containers
	withInit.Spec.InitContainers[1].RestartPolicy = &always
	whole := limited("")
	whole.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("5Mi")}}
	for _, c := range []struct {
		name        string
		pod         *v1.Pod
		limit       string
		allocatable string
		want        int64
	}{
		{"vol-45 nothing known", limited(""), "", "", 0},
		{"vol-45 allocatable", limited(""), "", "8Mi", 8 << 20},
		{"vol-45 the pod's limit", limited("2Mi", "1Mi"), "", "8Mi", 3 << 20},
		{"vol-45 one container without a limit", limited("2Mi", ""), "", "8Mi", 8 << 20},
		{"vol-45 sizeLimit", limited("2Mi"), "1Mi", "8Mi", 1 << 20},
		{"vol-45 sizeLimit above the pod's limit", limited("2Mi"), "4Mi", "8Mi", 2 << 20},
		{"vol-45 sizeLimit 0", limited("2Mi"), "0", "8Mi", 2 << 20},
		{"vol-45 the pod's limit above allocatable", limited("2Gi"), "", "8Mi", 8 << 20},
		{"vol-45 sizeLimit alone", limited(""), "1Mi", "", 1 << 20},
		{"vol-45 init containers and sidecars", withInit, "", "8Mi", 4 << 20},
		{"vol-45 limit of the pod as a whole", whole, "", "8Mi", 5 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var allocatable v1.ResourceList
			if c.allocatable != "" {
				allocatable = v1.ResourceList{v1.ResourceMemory: resource.MustParse(c.allocatable)}
			}
			assert.Equal(t, c.want, emptydir.Size(c.pod, spec("", c.limit).Volume.EmptyDir.SizeLimit, allocatable))
		})
	}
}

func TestHugePages(t *testing.T) {
	requests := func(names ...v1.ResourceName) *v1.Pod {
		pod := new(v1.Pod)
		for i, n := range names {
			c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{n: resource.MustParse("2Mi")}}}
			if i == 0 {
				pod.Spec.Containers = append(pod.Spec.Containers, c)
			} else {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			}
		}
		return pod
	}
	asAWhole := requests("cpu")
	asAWhole.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}}
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		medium    v1.StorageMedium
		want, err string
	}{
		{"the request of the pod as a whole", asAWhole, "HugePages-2Mi", "2Mi", ""},
		{"vol-46 the one size", requests("hugepages-2Mi", "hugepages-2Mi"), "HugePages", "2Mi", ""},
		{"vol-46 several sizes", requests("hugepages-2Mi", "hugepages-1Gi"), "HugePages", "", "medium: HugePages can't be used if container requests multiple huge page sizes"},
		{"vol-46 a named size", requests("hugepages-2Mi", "hugepages-1Gi"), "HugePages-1Gi", "1Gi", ""},
		{"vol-46 no request", requests("cpu"), "HugePages", "", "medium HugePages: hugePages storage requested, but there is no resource request for huge pages"},
		{"vol-46 no request of that size", requests("hugepages-2Mi"), "HugePages-1Gi", "", "medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages"},
		{"no size", requests("hugepages-2Mi"), "HugePages-big", "", "medium HugePages-big: quantities must match the regular expression"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := emptydir.PageSize(c.pod, c.medium)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got.String())
		})
	}
}

// vol-44
func TestADirectoryIsOpenToAllAndMarkedReady(t *testing.T) {
	p := plugin(t, new(volumetest.Mounter))
	req := volumetest.Request(t, p, spec("", ""))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(req.RootDir, "pods", "u1", "volumes", "kubernetes.io~empty-dir", "cache"), mounted.Path)
	assert.False(t, mounted.ReadOnly)
	assert.True(t, mounted.SELinuxRelabel)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(mounted.Path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o777), info.Mode().Perm())
		info, err = os.Stat(filepath.Dir(mounted.Path))
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o750), info.Mode().Perm())
	}
	ready := filepath.Join(req.RootDir, "pods", "u1", "plugins", "kubernetes.io~empty-dir", "cache", "ready")
	assert.FileExists(t, ready)

	require.NoError(t, os.Chmod(mounted.Path, 0o700), "the pod's own doing")
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(mounted.Path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), "a ready directory is not changed")
	}
	require.NoError(t, os.RemoveAll(mounted.Path))
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.DirExists(t, mounted.Path, "ready, but gone: set up again")

	require.NoError(t, p.TearDown(t.Context(), req.Place)) // vol-48
	assert.NoDirExists(t, mounted.Path)
	assert.NoFileExists(t, ready)
}

func TestWhatIsMounted(t *testing.T) {
	for _, c := range []struct {
		name    string
		medium  v1.StorageMedium
		limit   string
		fstype  string
		options []string
	}{
		{"vol-45", v1.StorageMediumMemory, "1Mi", "tmpfs", []string{"size=1048576", "noswap"}},
		{"vol-45 without a bound", v1.StorageMediumMemory, "", "tmpfs", []string{"noswap"}},
		{"vol-46", v1.StorageMediumHugePages, "", "hugetlbfs", []string{"pagesize=2Mi"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mounter := new(volumetest.Mounter)
			p := plugin(t, mounter)
			req := volumetest.Request(t, p, spec(c.medium, c.limit))
			req.Pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}}}}
			for range 2 {
				_, err := p.SetUp(t.Context(), req)
				require.NoError(t, err)
			}
			points, err := mounter.List()
			require.NoError(t, err)
			require.Len(t, points, 1, "mounted once")
			assert.Equal(t, c.fstype, points[0].Type)
			assert.Equal(t, c.options, points[0].Opts)
			require.NoError(t, p.TearDown(t.Context(), req.Place))
			assert.Empty(t, mounter.Below(req.RootDir))
		})
	}
}

func TestMemoryFollowsThePodsLimit(t *testing.T) {
	mounter := new(volumetest.Mounter)
	p := plugin(t, mounter)
	s := spec(v1.StorageMediumMemory, "")
	require.True(t, p.Refreshes(s))
	require.False(t, p.Refreshes(spec("", "")), "vol-11")
	req := volumetest.Request(t, p, s)
	req.Pod.Spec.Containers = limited("2Mi").Spec.Containers
	_, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	req.Refresh = true
	req.Pod.Spec.Containers = limited("3Mi").Spec.Containers
	for range 2 {
		_, err = p.SetUp(t.Context(), req)
		require.NoError(t, err)
		points, _ := mounter.List()
		require.Len(t, points, 1)
		assert.Equal(t, []string{"size=3145728", "remount"}, points[0].Opts)
	}
}

func TestAMediumThatDoesNotExistIsNamed(t *testing.T) {
	p := plugin(t, new(volumetest.Mounter))
	req := volumetest.Request(t, p, spec("Tape", ""))
	_, err := p.SetUp(t.Context(), req)
	require.EqualError(t, err, `emptydir: unknown storage medium "Tape"`)
	assert.NoDirExists(t, req.PodDir())
	_, err = emptydir.New(emptydir.Config{})
	require.EqualError(t, err, "emptydir: Config.Mounter is nil")
}
