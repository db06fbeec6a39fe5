package csi_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/token"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-63: tokens that expire are replaced only if the driver requires republishing.
func TestADriverThatDoesNotRequireRepublishingIsNotCalledForTokens(t *testing.T) {
	for _, requires := range []*bool{nil, ptr(false)} {
		tokens, err := token.New(token.Config{Get: func(_ context.Context, _, _ string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
			r.Status.Token, r.Status.ExpirationTimestamp = "t", metav1.NewTime(time.Now().Add(time.Hour))
			return r, nil
		}})
		require.NoError(t, err)
		about := &storagev1.CSIDriverSpec{AttachRequired: ptr(false), RequiresRepublish: requires, TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}
		w := newWorld(t, csi.Config{Drivers: &api{driver: about}, Tokens: tokens})
		mounted, publish := w.published(t, w.request(t, persistent("vol-1")))
		assert.NotEmpty(t, publish.VolumeContext["csi.storage.k8s.io/serviceAccount.tokens"])
		assert.Zero(t, mounted.RefreshAt)
	}
}

// The files of a volume in use are not walked at each refresh.
func TestARefreshDoesNotSetTheOwnership(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	req := w.request(t, persistent("vol-1"))
	group := int64(os.Getegid())
	req.FSGroup = &group
	mounted, _ := w.published(t, req)
	info, err := os.Stat(mounted.Path)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSetgid, "it was set at first")

	file := filepath.Join(mounted.Path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chmod(mounted.Path, 0o750)) // by the pod
	req.Refresh = true
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err = os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestAPersistentVolumeThatIsReadOnlyIsPublishedSo(t *testing.T) {
	for _, of := range []string{"neither", "the pod", "the persistent volume"} {
		t.Run(of, func(t *testing.T) {
			w := newWorld(t, csi.Config{})
			s := persistent("vol-1")
			s.ReadOnly, s.PV.Spec.CSI.ReadOnly = of == "the pod", of == "the persistent volume"
			mounted, publish := w.published(t, w.request(t, s))
			assert.Equal(t, of != "neither", publish.Readonly)
			assert.Equal(t, of != "neither", mounted.Volume.ReadOnly)
		})
	}
}

// vol-65: after a restart of the machine the data of a volume is there, but not its mount. What the
// files got before does not count.
func TestAfterARestartOfTheMachineTheOwnershipIsSetAgain(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	req := w.request(t, persistent("vol-1"))
	group := int64(os.Getegid())
	req.FSGroup = &group
	mounted, _ := w.published(t, req)
	file := filepath.Join(mounted.Path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600)) // by another node, which had the volume meanwhile
	require.NoError(t, w.mounter.Unmount(mounted.Path))
	_, err := w.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o660), info.Mode().Perm())
}

// A stubborn mounter reports that a path is mounted, whatever was unmounted.
type stubborn struct {
	*volumetest.Mounter
	path string
}

func (m *stubborn) IsMountPoint(path string) (bool, error) {
	if path == m.path {
		return true, nil
	}
	return m.Mounter.IsMountPoint(path)
}

// A target that is still mounted is neither removed nor forgotten, whatever the driver responds.
func TestATargetThatIsStillMountedIsKept(t *testing.T) {
	w := newWorld(t, csi.Config{})
	req := w.request(t, persistent("vol-1"))
	mounted, _ := w.published(t, req)
	mounter := &stubborn{Mounter: w.mounter, path: mounted.Path}
	p := plugin(t, csi.Config{RootDir: w.root, Mounter: mounter})
	require.NoError(t, p.Register(t.Context(), driverName, w.driver.socket, []string{"1.0.0"}))
	require.ErrorIs(t, p.TearDown(t.Context(), req.Place), volume.ErrMounted)
	assert.FileExists(t, filepath.Join(filepath.Dir(mounted.Path), "vol_data.json"))

	mounter.path = ""
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.NoDirExists(t, filepath.Dir(mounted.Path))
}
