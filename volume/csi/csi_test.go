package csi_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/csitest"
	"github.com/kubeparts/kubeparts/volume/token"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func ptr[T any](v T) *T { return &v }

// An api is the API server's information about drivers.
type api struct {
	driver      *storagev1.CSIDriverSpec
	attachments map[string]*storagev1.VolumeAttachment
	err         error // of VolumeAttachment

	registered []csi.Driver
	gone       []string
}

func (a *api) DriverRegistered(_ context.Context, d csi.Driver) error {
	a.registered = append(a.registered, d)
	return nil
}

func (a *api) DriverDeregistered(_ context.Context, name string) { a.gone = append(a.gone, name) }

func (a *api) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	if a.driver == nil {
		return nil, fmt.Errorf("csidriver %q: %w", name, fs.ErrNotExist)
	}
	return &storagev1.CSIDriver{Spec: *a.driver}, nil
}

func (a *api) VolumeAttachment(_ context.Context, name string) (*storagev1.VolumeAttachment, error) {
	if a.err != nil {
		return nil, a.err
	}
	if got := a.attachments[name]; got != nil {
		return got, nil
	}
	return nil, fmt.Errorf("volumeattachment %q: %w", name, fs.ErrNotExist)
}

// A world is a plugin with one driver, and one root for both.
type world struct {
	*csi.Plugin
	driver  served
	mounter *volumetest.Mounter
	root    string
}

func newWorld(t *testing.T, cfg csi.Config, without ...csipb.NodeServiceCapability_RPC_Type) *world {
	t.Helper()
	w := &world{mounter: new(volumetest.Mounter), root: t.TempDir()}
	w.driver = serve(t, &csitest.Driver{Name: driverName, Dir: t.TempDir(), Mounter: w.mounter, Without: without})
	cfg.RootDir, cfg.Mounter = w.root, w.mounter
	w.Plugin = plugin(t, cfg)
	require.NoError(t, w.Register(t.Context(), driverName, w.driver.socket, []string{"1.0.0"}))
	return w
}

func (w *world) request(t *testing.T, s *volume.Spec) volume.Request {
	req := volumetest.Request(t, w, s)
	req.RootDir = w.root
	return req
}

// published sets a volume up, and returns the request that the driver got.
func (w *world) published(t *testing.T, req volume.Request) (volume.SetUpResult, *csipb.NodePublishVolumeRequest) {
	t.Helper()
	if req.Spec.PV != nil {
		require.NoError(t, w.Stage(t.Context(), req))
	}
	mounted, err := w.SetUp(t.Context(), req)
	require.NoError(t, err)
	for _, id := range w.driver.InUse() {
		for _, r := range w.driver.Volume(id).Published {
			return mounted, r
		}
	}
	t.Fatal("nothing was published")
	return mounted, nil
}

// vol-61
func TestPathsAndData(t *testing.T) {
	w := newWorld(t, csi.Config{})
	s := persistent("vol/1")
	s.PV.Spec.MountOptions = []string{"noatime"}
	req := w.request(t, s)
	mounted, publish := w.published(t, req)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("vol/1")))
	global := filepath.Join(w.root, "plugins", "kubernetes.io", "csi", driverName, hash, "globalmount")
	pod := filepath.Join(w.root, "pods", "u1", "volumes", "kubernetes.io~csi", s.DirName())
	assert.Equal(t, filepath.Join(pod, "mount"), mounted.Path)
	assert.Equal(t, mounted.Path, publish.TargetPath)
	assert.Equal(t, global, publish.StagingTargetPath)
	assert.Equal(t, map[string]string{"tier": "gold"}, publish.VolumeContext)
	assert.Equal(t, "ext4", publish.VolumeCapability.GetMount().FsType)
	assert.Equal(t, []string{"noatime"}, publish.VolumeCapability.GetMount().MountFlags)
	assert.Equal(t, global, w.driver.Volume("vol/1").Staged)

	var saved map[string]string
	data, err := os.ReadFile(filepath.Join(pod, "vol_data.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &saved))
	assert.Equal(t, map[string]string{
		"specVolID": s.PV.Name, "volumeHandle": "vol/1", "driverName": driverName, "nodeName": "node-1", "volumeLifecycleMode": "Persistent", "published": "true",
		"attachmentID": fmt.Sprintf("csi-%x", sha256.Sum256([]byte("vol/1"+driverName+"node-1"))),
	}, saved)
	assert.FileExists(t, filepath.Join(filepath.Dir(global), "vol_data.json"))
	name, err := w.SharedName(s)
	require.NoError(t, err)
	assert.Equal(t, driverName+"^vol/1", name, "vol-62")

	require.NoError(t, w.TearDown(t.Context(), req.Place))
	assert.NoDirExists(t, pod)
	require.NoError(t, w.Unstage(t.Context(), s))
	assert.NoDirExists(t, filepath.Dir(global))
	assert.Empty(t, w.driver.InUse())
	assert.Empty(t, w.mounter.Below(w.root))
}

// vol-61: the spec of a volume is reconstructed from the disk alone.
func TestVolumesAreReconstructedFromDisk(t *testing.T) {
	for _, s := range []*volume.Spec{persistent("vol-1"), inline()} {
		w := newWorld(t, csi.Config{})
		req := w.request(t, s)
		w.published(t, req)
		got, err := w.ConstructSpec(req.Place)
		require.NoError(t, err)
		assert.Equal(t, s.DirName(), got.DirName())
		assert.True(t, w.CanSupport(got))
		shared, err := w.SharedName(got)
		require.NoError(t, err)
		want, err := w.SharedName(s)
		require.NoError(t, err)
		assert.Equal(t, want, shared)
	}
}

// vol-62
func TestAnInlineVolumeIsNamedAfterItsPod(t *testing.T) {
	w := newWorld(t, csi.Config{Drivers: &api{driver: &storagev1.CSIDriverSpec{
		PodInfoOnMount: ptr(true), VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral},
	}}})
	_, publish := w.published(t, w.request(t, inline()))
	assert.Equal(t, fmt.Sprintf("csi-%x", sha256.Sum256([]byte("u1scratch"))), publish.VolumeId)
	assert.Empty(t, publish.StagingTargetPath)
	assert.Equal(t, map[string]string{ // vol-63
		"size":                                   "1Gi",
		"csi.storage.k8s.io/pod.name":            "web",
		"csi.storage.k8s.io/pod.namespace":       "default",
		"csi.storage.k8s.io/pod.uid":             "u1",
		"csi.storage.k8s.io/serviceAccount.name": "builder",
		"csi.storage.k8s.io/ephemeral":           "true",
	}, publish.VolumeContext)

	_, err := w.SetUp(t.Context(), w.request(t, persistent("vol-1")))
	require.EqualError(t, err, `csi: volume mode "Persistent" not supported by driver test.csi.example.com (only supports ["Ephemeral"])`)
}

// vol-63
func TestTokensAndRepublishing(t *testing.T) {
	given := 0
	tokens, err := token.New(token.Config{Get: func(_ context.Context, namespace, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		given++
		assert.Equal(t, "default/builder", namespace+"/"+account)
		r.Status.Token = fmt.Sprint("token ", r.Spec.Audiences)
		r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		return r, nil
	}})
	require.NoError(t, err)
	about := &storagev1.CSIDriverSpec{
		AttachRequired: ptr(false), RequiresRepublish: ptr(true),
		TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}, {Audience: ""}},
	}
	w := newWorld(t, csi.Config{Drivers: &api{driver: about}, Tokens: tokens})
	s := persistent("vol-1")
	assert.False(t, w.Refreshes(s))
	req := w.request(t, s)
	mounted, publish := w.published(t, req)
	assert.True(t, w.Refreshes(s), "vol-11")
	assert.False(t, mounted.RefreshAt.IsZero())
	var all map[string]map[string]string
	require.NoError(t, json.Unmarshal([]byte(publish.VolumeContext["csi.storage.k8s.io/serviceAccount.tokens"]), &all))
	assert.Equal(t, "token [vault]", all["vault"]["token"])
	assert.Equal(t, "token []", all[""]["token"])
	assert.NotEmpty(t, all["vault"]["expirationTimestamp"])
	req.Refresh = true
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, 2, w.driver.Volume("vol-1").Publishes)
	assert.Equal(t, 2, given)

	about.ServiceAccountTokenInSecrets = ptr(true)
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	publish = w.driver.Volume("vol-1").Published[mounted.Path]
	assert.NotContains(t, publish.VolumeContext, "csi.storage.k8s.io/serviceAccount.tokens")
	assert.Contains(t, publish.Secrets, "csi.storage.k8s.io/serviceAccount.tokens")
}

// vol-64
func TestAMissingDriver(t *testing.T) {
	changed := 0
	cfg := csi.Config{RootDir: t.TempDir(), Mounter: new(volumetest.Mounter), Changed: func() { changed++ }}
	objects := new(api)
	cfg.Drivers = objects
	p := plugin(t, cfg)
	req := volumetest.Request(t, p, persistent("vol-1"))
	const want = "csi: driver name test.csi.example.com not found in the list of registered CSI drivers"
	require.EqualError(t, p.Stage(t.Context(), req), want)
	_, err := p.SetUp(t.Context(), req)
	require.EqualError(t, err, want)
	assert.NoDirExists(t, req.PodDir())
	require.NoError(t, p.TearDown(t.Context(), req.Place), "nothing was published")

	d := serve(t, &csitest.Driver{Name: driverName, Dir: t.TempDir(), Mounter: new(volumetest.Mounter), MaxVolumes: 7})
	require.NoError(t, p.Register(t.Context(), driverName, d.socket, []string{"v1.13.0"}))
	assert.Equal(t, 1, changed)
	assert.Equal(t, []csi.Driver{{Name: driverName, Endpoint: d.socket, NodeID: "node-of-" + driverName, MaxVolumes: 7}}, objects.registered)
	assert.Len(t, p.Drivers(), 1)
	p.Deregister(t.Context(), driverName)
	p.Deregister(t.Context(), driverName)
	assert.Equal(t, []string{driverName}, objects.gone)
	for name, versions := range map[string][]string{driverName: {"0.3.0"}, "a/../b": {"1.0.0"}} {
		require.Error(t, p.Register(t.Context(), name, d.socket, versions))
	}
	d.Fail("NodeGetInfo", status.Error(codes.Internal, "no"))
	require.ErrorContains(t, p.Register(t.Context(), driverName, d.socket, []string{"1.0.0"}), "NodeGetInfo of driver "+driverName)
}

// vol-67
func TestFSGroupPolicy(t *testing.T) {
	policy := func(p storagev1.FSGroupPolicy) *storagev1.CSIDriverSpec {
		return &storagev1.CSIDriverSpec{AttachRequired: ptr(false), FSGroupPolicy: &p, VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"}}
	}
	noGroup := []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP}
	rwx := persistent("vol-1")
	rwx.PV.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	plain := persistent("vol-1")
	plain.PV.Spec.CSI.FSType = ""
	readOnly := persistent("vol-1")
	readOnly.ReadOnly = true
	for _, c := range []struct {
		name    string
		spec    *volume.Spec
		about   *storagev1.CSIDriverSpec
		without []csipb.NodeServiceCapability_RPC_Type
		walks   bool
		group   string
	}{
		{"vol-67 the driver does", persistent("vol-1"), nil, nil, false, "4321"},
		{"vol-67 default", persistent("vol-1"), nil, noGroup, true, ""},
		{"vol-67 default, without fsType", plain, nil, noGroup, false, ""},
		{"vol-67 default, many writers", rwx, nil, noGroup, false, ""},
		{"vol-67 default, read-only", readOnly, nil, noGroup, false, ""},
		{"vol-67 File", rwx, policy(storagev1.FileFSGroupPolicy), noGroup, true, ""},
		{"vol-67 None", persistent("vol-1"), policy(storagev1.NoneFSGroupPolicy), noGroup, false, ""},
		{"vol-67 inline without fsType", inline(), nil, noGroup, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := csi.Config{}
			if c.about != nil {
				cfg.Drivers = &api{driver: c.about}
			}
			w := newWorld(t, cfg, c.without...)
			req := w.request(t, c.spec)
			walked := false
			group := int64(4321)
			if os.Geteuid() == 0 {
				req.FSGroup = &group
			} else {
				group = int64(os.Getegid())
				req.FSGroup = &group
			}
			mounted, publish := w.published(t, req)
			info, err := os.Stat(mounted.Path)
			require.NoError(t, err)
			walked = info.Mode()&fs.ModeSetgid != 0
			assert.Equal(t, c.walks, walked)
			if c.group != "" {
				assert.Equal(t, fmt.Sprint(group), publish.VolumeCapability.GetMount().VolumeMountGroup)
			} else {
				assert.Empty(t, publish.VolumeCapability.GetMount().VolumeMountGroup)
			}
		})
	}
}

func TestAccessModes(t *testing.T) {
	multi := []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER}
	for _, c := range []struct {
		mode    v1.PersistentVolumeAccessMode
		without []csipb.NodeServiceCapability_RPC_Type
		want    csipb.VolumeCapability_AccessMode_Mode
	}{
		{v1.ReadWriteOnce, multi, csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		{v1.ReadWriteOnce, nil, csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		{v1.ReadWriteOncePod, multi, csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		{v1.ReadWriteOncePod, nil, csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER},
		{v1.ReadOnlyMany, nil, csipb.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY},
		{v1.ReadWriteMany, nil, csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	} {
		w := newWorld(t, csi.Config{}, c.without...)
		s := persistent("vol-1")
		s.PV.Spec.AccessModes = []v1.PersistentVolumeAccessMode{c.mode}
		_, publish := w.published(t, w.request(t, s))
		assert.Equal(t, c.want, publish.VolumeCapability.AccessMode.Mode, "%s without %v", c.mode, c.without)
	}
}

func TestSecrets(t *testing.T) {
	objects := volumetest.NewObjects(volumetest.Secret("vault", "stage", map[string]string{"k": "s"}), volumetest.Secret("vault", "publish", map[string]string{"k": "p"}), volumetest.Secret("default", "inline", map[string]string{"k": "i"}))
	w := newWorld(t, csi.Config{Objects: objects})
	s := persistent("vol-1")
	s.PV.Spec.CSI.NodeStageSecretRef = &v1.SecretReference{Namespace: "vault", Name: "stage"}
	s.PV.Spec.CSI.NodePublishSecretRef = &v1.SecretReference{Namespace: "vault", Name: "publish"}
	_, publish := w.published(t, w.request(t, s))
	assert.Equal(t, map[string]string{"k": "p"}, publish.Secrets)
	assert.Equal(t, map[string]string{"k": "s"}, w.driver.Volume("vol-1").Stage.Secrets)

	in := inline()
	in.Volume.CSI.NodePublishSecretRef = &v1.LocalObjectReference{Name: "gone"}
	_, err := w.SetUp(t.Context(), w.request(t, in))
	require.EqualError(t, err, `csi: fetching NodePublishSecretRef default/gone failed: secret "gone" not found`)
}

// vol-17
func TestThePublishContextIsPassedToTheDriver(t *testing.T) {
	a := &api{attachments: map[string]*storagev1.VolumeAttachment{}}
	w := newWorld(t, csi.Config{Drivers: a})
	s := persistent("vol-1")
	needs, err := w.NeedsAttach(t.Context(), s)
	require.NoError(t, err)
	assert.True(t, needs, "a driver without a CSIDriver object")
	needs, err = w.NeedsAttach(t.Context(), inline())
	require.NoError(t, err)
	assert.False(t, needs)
	req := w.request(t, s)
	name := fmt.Sprintf("csi-%x", sha256.Sum256([]byte("vol-1"+driverName+"node-1")))
	require.ErrorContains(t, w.Stage(t.Context(), req), "get VolumeAttachment "+name)
	a.attachments[name] = new(storagev1.VolumeAttachment)
	require.ErrorContains(t, w.Stage(t.Context(), req), "the volume is not attached yet")
	a.attachments[name].Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "vdb"}}
	_, publish := w.published(t, req)
	assert.Equal(t, map[string]string{"device": "vdb"}, publish.PublishContext)
	a.driver = &storagev1.CSIDriverSpec{AttachRequired: ptr(false)}
	needs, err = w.NeedsAttach(t.Context(), s)
	require.NoError(t, err)
	assert.False(t, needs)
}

func TestExpandStats(t *testing.T) {
	w := newWorld(t, csi.Config{})
	req := w.request(t, persistent("vol-1"))
	mounted, _ := w.published(t, req)
	got, err := w.Expand(t.Context(), req, resource.MustParse("2Gi"))
	require.NoError(t, err)
	assert.EqualValues(t, 2<<30, got.Value())
	assert.EqualValues(t, 2<<30, w.driver.Volume("vol-1").Size)

	stats, err := w.Stats(t.Context(), req.Place, mounted.Volume)
	require.NoError(t, err)
	assert.EqualValues(t, csitest.Size, *stats.CapacityBytes)
	assert.EqualValues(t, 4096, *stats.UsedBytes)
	assert.EqualValues(t, 1000, *stats.Inodes)
}

func TestAFailureIsUndone(t *testing.T) {
	w := newWorld(t, csi.Config{})
	s := persistent("vol-1")
	req := w.request(t, s)
	w.driver.Fail("NodeStageVolume", status.Error(codes.InvalidArgument, "no such disk"))
	require.ErrorContains(t, w.Stage(t.Context(), req), "NodeStageVolume: rpc error: code = InvalidArgument desc = no such disk")
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("vol-1")))
	dir := filepath.Join(w.root, "plugins", "kubernetes.io", "csi", driverName, hash)
	assert.NoDirExists(t, dir, "a final error removes the directory")
	w.driver.Fail("NodeStageVolume", status.Error(codes.DeadlineExceeded, "slow"))
	require.Error(t, w.Stage(t.Context(), req))
	assert.DirExists(t, dir, "the driver may still be working")
	require.NoError(t, w.Unstage(t.Context(), s))
	w.driver.Fail("NodeStageVolume", nil)

	require.NoError(t, w.Stage(t.Context(), req))
	w.driver.Fail("NodePublishVolume", status.Error(codes.Internal, "no"))
	_, err := w.SetUp(t.Context(), req)
	require.ErrorContains(t, err, "NodePublishVolume: rpc error: code = Internal desc = no")
	w.driver.Fail("NodePublishVolume", nil)
	require.NoError(t, w.TearDown(t.Context(), req.Place))
	w.driver.Fail("NodeUnpublishVolume", status.Error(codes.Internal, "busy"))
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	require.ErrorContains(t, w.TearDown(t.Context(), req.Place), "busy")
	w.driver.Fail("NodeUnpublishVolume", nil)
	require.NoError(t, w.TearDown(t.Context(), req.Place))
	require.NoError(t, w.Unstage(t.Context(), s))
	assert.Empty(t, w.driver.InUse())
}

// vol-61
func TestACallThatHangsEnds(t *testing.T) {
	w := newWorld(t, csi.Config{Timeout: 50 * time.Millisecond})
	w.driver.stop() // its socket is gone, but it is not deregistered
	_, err := w.SetUp(t.Context(), w.request(t, inline()))
	require.Error(t, err)
	assert.Equal(t, 2*time.Minute, csi.DefaultTimeout)
	for _, cfg := range []csi.Config{{}, {RootDir: "/x"}, {RootDir: "/x", NodeName: "n"}, {RootDir: "/x", NodeName: "n", Mounter: w.mounter, Timeout: -1}} {
		_, err := csi.New(cfg)
		require.ErrorContains(t, err, "csi: Config.")
	}
}
