package csi_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// pvClaims binds the claim with the name of a persistent volume to it.
type pvClaims map[string]*v1.PersistentVolume

func (c pvClaims) PersistentVolumeClaim(_ context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: name}, Status: v1.PersistentVolumeClaimStatus{
			Phase: v1.ClaimBound, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}, nil
}

func (c pvClaims) PersistentVolume(_ context.Context, name string) (*v1.PersistentVolume, error) {
	pv := c[name]
	if pv == nil {
		return nil, fs.ErrNotExist
	}
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef = &v1.ObjectReference{UID: types.UID(name)}
	return pv, nil
}

func (pvClaims) ClaimExpanded(context.Context, *v1.PersistentVolumeClaim, resource.Quantity) error {
	return nil
}

// add adds a persistent volume of the handle "vol-1".
func (c pvClaims) add(name string, mode v1.PersistentVolumeMode) {
	pv := persistent("vol-1").PV
	pv.Name, pv.Spec.VolumeMode = name, &mode
	c[name] = pv
}

// podOf returns a pod that uses the claim as a file system or as a device.
func (c pvClaims) podOf(uid, claim string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	pod.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}}
	if *c[claim].Spec.VolumeMode == v1.PersistentVolumeBlock {
		pod.Spec.Containers[0].VolumeMounts = nil
		pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}
	}
	return pod
}

// managed runs a manager over the plugin until stop is called, or the test ends.
func (w *world) managed(t *testing.T, claims pvClaims) (m *volume.Manager, stop func()) {
	t.Helper()
	m, err := volume.New(volume.Config{
		RootDir: w.root, Plugins: []volume.Plugin{w.Plugin}, Mounter: w.mounter, StatsPeriod: -1, WaitTimeout: 2 * time.Second,
		PersistentVolumes: volume.PersistentVolumeConfig{Claims: claims},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return m, stop
}

// Two persistent volumes may have one volume handle. The volume is staged once, at the path of the first,
// is published from there for the pods of both, and is unstaged after the last of them.
func TestTwoDevicesWithOneHandleAreStagedOnce(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, csi.Config{})
		w.driver.Devices = map[string]string{"vol-1": os.DevNull}
		claims := pvClaims{}
		claims.add("one", v1.PersistentVolumeBlock)
		claims.add("two", v1.PersistentVolumeBlock)
		m, stop := w.managed(t, claims)
		first, second := claims.podOf("u1", "one"), claims.podOf("u2", "two")
		for _, pod := range []*v1.Pod{first, second} {
			_, err := m.Mount(t.Context(), pod)
			require.NoError(t, err)
		}
		if restart {
			stop()
			w.restart(t)
			m, stop = w.managed(t, claims)
			for _, pod := range []*v1.Pod{second, first} {
				_, err := m.Mount(t.Context(), pod)
				require.NoError(t, err)
			}
		}
		assert.Len(t, w.driver.Volume("vol-1").Published, 2)
		require.NoError(t, m.Unmount(t.Context(), first))
		assert.Len(t, w.driver.Volume("vol-1").Published, 1)
		require.NoError(t, m.Unmount(t.Context(), second))
		assert.Eventually(t, func() bool { return len(m.VolumesInUse()) == 0 }, time.Minute, time.Millisecond)
		assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
		assert.Empty(t, w.driver.InUse())
		stop()
		var left []string
		require.NoError(t, filepath.WalkDir(filepath.Join(w.root, "plugins/kubernetes.io/csi"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				left = append(left, path)
			}
			return err
		}))
		assert.Empty(t, left)
	}
}

// A volume that may be staged for one persistent volume is unstaged there before it is staged for another.
func TestAFailedStageOfOneVolumeIsRevertedBeforeThatOfAnother(t *testing.T) {
	w := newWorld(t, csi.Config{})
	w.driver.Devices = map[string]string{"vol-1": os.DevNull}
	claims := pvClaims{}
	claims.add("one", v1.PersistentVolumeBlock)
	claims.add("two", v1.PersistentVolumeBlock)
	m, _ := w.managed(t, claims)
	w.driver.FailAfter("NodeStageVolume", status.Error(codes.DeadlineExceeded, "late"), 1000)
	_, err := m.Mount(t.Context(), claims.podOf("u1", "one"))
	require.Error(t, err)
	w.driver.Fail("NodeUnstageVolume", status.Error(codes.Internal, "busy"))
	require.NoError(t, m.Unmount(t.Context(), claims.podOf("u1", "one")))
	w.driver.FailAfter("NodeStageVolume", nil, 0)
	w.driver.Fail("NodeUnstageVolume", nil)
	assert.Eventually(t, func() bool {
		_, err := m.Mount(t.Context(), claims.podOf("u2", "two"))
		return err == nil
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
	require.NoError(t, m.Unmount(t.Context(), claims.podOf("u2", "two")))
	assert.Eventually(t, func() bool { return len(m.VolumesInUse()) == 0 }, time.Minute, time.Millisecond)
	assert.Empty(t, w.driver.InUse())
}

// A volume that is staged as a device cannot be published as a file system: the pod waits until it is
// unstaged.
func TestADeviceIsNotPublishedAsAFileSystem(t *testing.T) {
	w := newWorld(t, csi.Config{})
	w.driver.Devices = map[string]string{"vol-1": os.DevNull}
	claims := pvClaims{}
	claims.add("device", v1.PersistentVolumeBlock)
	claims.add("files", v1.PersistentVolumeFilesystem)
	m, _ := w.managed(t, claims)
	_, err := m.Mount(t.Context(), claims.podOf("u1", "device"))
	require.NoError(t, err)
	_, err = m.Mount(t.Context(), claims.podOf("u2", "files"))
	require.ErrorContains(t, err, `volume is in use by another pod as a block device`)
	require.NoError(t, m.Unmount(t.Context(), claims.podOf("u1", "device")))
	assert.Eventually(t, func() bool {
		_, err := m.Mount(t.Context(), claims.podOf("u2", "files"))
		return err == nil
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
	require.NoError(t, m.Unmount(t.Context(), claims.podOf("u2", "files")))
	assert.Eventually(t, func() bool { return len(m.VolumesInUse()) == 0 }, time.Minute, time.Millisecond)
	assert.Empty(t, w.driver.InUse())
}
