package csi_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A driver that mounts the volume and then fails, with any code and repeatedly, has not
// published it: SetUp fails until the driver has answered OK, also in an agent that was
// restarted meanwhile.
func TestAVolumeIsReadyWhenTheDriverHasAnsweredOK(t *testing.T) {
	device := persistent("vol-1")
	block := v1.PersistentVolumeBlock
	device.PV.Spec.VolumeMode, device.Block = &block, true
	for _, c := range []struct {
		name    string
		spec    *volume.Spec
		without []csipb.NodeServiceCapability_RPC_Type
	}{
		{"persistent", persistent("vol-1"), nil},
		{"not staged", persistent("vol-1"), []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}},
		{"inline", inline(), nil},
		{"block", device, nil},
	} {
		w := newWorld(t, csi.Config{}, c.without...)
		w.driver.Devices = map[string]string{"vol-1": os.DevNull}
		for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
			for times := 1; times <= 2; times++ {
				restart := times == 2
				t.Run(fmt.Sprintf("%s/%s/%d times", c.name, code, times), func(t *testing.T) {
					req := w.request(t, c.spec)
					if c.spec.PV != nil {
						require.NoError(t, w.Stage(t.Context(), req))
					}
					w.driver.FailAfter("NodePublishVolume", status.Error(code, "as asked for"), times)
					for range times {
						_, err := w.SetUp(t.Context(), req)
						require.ErrorContains(t, err, "as asked for")
						if restart {
							w.restart(t)
						}
					}
					require.Len(t, w.driver.InUse(), 1, "the driver has mounted it")
					id := w.driver.InUse()[0]
					before := w.driver.Volume(id).Publishes
					_, err := w.SetUp(t.Context(), req)
					require.NoError(t, err)
					assert.Equal(t, before+1, w.driver.Volume(id).Publishes)
					w.gone(t, req)
				})
			}
		}
	}
}

// A pod waits until the driver has answered OK: its containers are not started before.
func TestAPodWaitsUntilTheDriverHasAnsweredOK(t *testing.T) {
	w := newWorld(t, csi.Config{})
	m, err := volume.New(volume.Config{RootDir: w.root, Plugins: []volume.Plugin{w.Plugin}, Mounter: w.mounter, StatsPeriod: -1})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { assert.NoError(t, m.Run(ctx)) })

	pod := volumetest.Request(t, w, inline()).Pod
	pod.Spec.Volumes = []v1.Volume{*inline().Volume}
	pod.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}}}
	w.driver.FailAfter("NodePublishVolume", status.Error(codes.DeadlineExceeded, "as asked for"), 1)
	_, err = m.Mount(t.Context(), pod)
	require.NoError(t, err)
	require.Len(t, w.driver.InUse(), 1)
	assert.Equal(t, 1, w.driver.Volume(w.driver.InUse()[0]).Publishes)
	require.NoError(t, m.Unmount(t.Context(), pod))
	assert.Empty(t, w.driver.InUse())
}

// A volume that a failed call mounted is unpublished when its pod is removed, also by
// an agent that was restarted meanwhile.
func TestAVolumeThatWasPublishedHalfIsUnpublished(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restart=%t", code, restart), func(t *testing.T) {
				w := newWorld(t, csi.Config{})
				req := w.request(t, persistent("vol-1"))
				require.NoError(t, w.Stage(t.Context(), req))
				w.driver.FailAfter("NodePublishVolume", status.Error(code, "as asked for"), 1)
				_, err := w.SetUp(t.Context(), req)
				require.Error(t, err)
				assert.Len(t, w.driver.Volume("vol-1").Published, 1, "the driver has mounted it")
				if restart {
					w.restart(t)
				}
				w.gone(t, req)
			})
		}
	}
}

// A device that a failed call staged is not staged: Stage fails until the driver has
// answered OK, and the driver undoes the failed call.
func TestADeviceIsStagedWhenTheDriverHasAnsweredOK(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for times := 1; times <= 2; times++ {
			t.Run(fmt.Sprintf("%s/%d times", code, times), func(t *testing.T) {
				w := newWorld(t, csi.Config{})
				req := w.request(t, persistent("vol-1"))
				w.driver.FailAfter("NodeStageVolume", status.Error(code, "as asked for"), times)
				for range times {
					require.ErrorContains(t, w.Stage(t.Context(), req), "as asked for")
					w.restart(t)
				}
				assert.Zero(t, w.driver.Volume("vol-1").Stages)
				require.NoError(t, w.Stage(t.Context(), req))
				assert.Equal(t, 1, w.driver.Volume("vol-1").Stages)

				w.driver.FailAfter("NodeStageVolume", status.Error(code, "as asked for"), 1)
				require.Error(t, w.Stage(t.Context(), req))
				w.restart(t)
				require.NoError(t, w.Unstage(t.Context(), req.Spec))
				assert.Empty(t, w.driver.InUse())
				assert.Empty(t, w.mounter.Below(w.root))
			})
		}
	}
}

// A volume that was mounted by a call which failed is one that is mounted for the first
// time: the walk for the fsGroup is not taken for done because the root is right already.
func TestAVolumeThatWasPublishedHalfGetsItsGroup(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	req := w.request(t, persistent("vol-1"))
	group := int64(os.Getegid())
	req.FSGroup = &group
	require.NoError(t, w.Stage(t.Context(), req))
	w.driver.FailAfter("NodePublishVolume", status.Error(codes.DeadlineExceeded, "as asked for"), 1)
	_, err := w.SetUp(t.Context(), req)
	require.Error(t, err)
	dir := filepath.Join(req.Dir(), "mount")
	file := filepath.Join(dir, "file") // of an earlier pod
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chmod(dir, fs.ModeSetgid|0o770))
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o660), info.Mode().Perm())
}

// restart replaces the plugin by one that has only the state on disk.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.Plugin = plugin(t, csi.Config{RootDir: w.root, Mounter: w.mounter})
	require.NoError(t, w.Register(t.Context(), driverName, w.driver.socket, []string{"1.0.0"}))
}

// gone tears the volume down and checks that the driver was called.
func (w *world) gone(t *testing.T, req volume.Request) {
	t.Helper()
	require.NoError(t, w.TearDown(t.Context(), req.Place))
	if req.Spec.PV != nil {
		require.NoError(t, w.Unstage(t.Context(), req.Spec))
	}
	assert.Empty(t, w.driver.InUse())
	assert.Empty(t, w.mounter.Below(w.root))
}
