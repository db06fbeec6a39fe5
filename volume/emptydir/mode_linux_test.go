package emptydir_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func withMode(medium v1.StorageMedium, mode int32) *volume.Spec {
	s := spec(medium, "")
	s.Volume.EmptyDir.Mode = &mode
	return s
}

// The directory has the mode that the pod sets, on disk and in memory, unless its fsGroup
// needs more.
func TestADirectoryHasTheModeThatIsSet(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	for _, medium := range []v1.StorageMedium{v1.StorageMediumDefault, v1.StorageMediumMemory} {
		for _, c := range []struct {
			name  string
			mode  int32
			group bool
			want  fs.FileMode
		}{
			{"private", 0o700, false, 0o700},
			{"group", 0o750, false, 0o750},
			{"sticky", 0o1777, false, fs.ModeSticky | 0o777},
			{"none", 0, false, 0},
			{"fsGroup", 0o700, true, fs.ModeSetgid | 0o770},
		} {
			t.Run(string(medium)+c.name, func(t *testing.T) {
				p, err := emptydir.New(emptydir.Config{Mounter: mount.New("")})
				require.NoError(t, err)
				req := volumetest.Request(t, p, withMode(medium, c.mode))
				if group := int64(4321); c.group {
					req.FSGroup = &group
				}
				t.Cleanup(func() { _ = p.TearDown(t.Context(), req.Place) })
				mounted, err := p.SetUp(t.Context(), req)
				require.NoError(t, err)
				info, err := os.Stat(mounted.Path)
				require.NoError(t, err)
				assert.Equal(t, fs.ModeDir|c.want, info.Mode())

				require.NoError(t, os.Chmod(mounted.Path, 0o711)) // by the pod
				req.Refresh = true
				_, err = p.SetUp(t.Context(), req)
				require.NoError(t, err)
				info, err = os.Stat(mounted.Path)
				require.NoError(t, err)
				assert.Equal(t, fs.FileMode(0o711), info.Mode().Perm(), "a ready directory is not changed")
				require.NoError(t, p.TearDown(t.Context(), req.Place))
			})
		}
	}
}

func TestTheModeIsAMountOption(t *testing.T) {
	for medium, want := range map[v1.StorageMedium][]string{
		v1.StorageMediumMemory:    {"noswap", "mode=1770"},
		v1.StorageMediumHugePages: {"pagesize=2Mi", "mode=1770"},
	} {
		mounter := new(volumetest.Mounter)
		p := plugin(t, mounter)
		req := volumetest.Request(t, p, withMode(medium, 0o1770))
		req.Pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}}}}
		_, err := p.SetUp(t.Context(), req)
		require.NoError(t, err)
		points, err := mounter.List()
		require.NoError(t, err)
		require.Len(t, points, 1)
		assert.Equal(t, want, points[0].Opts)
	}
}

func TestAModeThatIsNoneIsRefused(t *testing.T) {
	for _, mode := range []int32{-1, 0o2000, 0o4755} {
		p := plugin(t, new(volumetest.Mounter))
		req := volumetest.Request(t, p, withMode("", mode))
		_, err := p.SetUp(t.Context(), req)
		require.ErrorContains(t, err, "must be between 0 and 01777")
		assert.NoDirExists(t, req.PodDir())
	}
}
