package csi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// blockOf makes the volume one of a device.
func blockOf(s *volume.Spec) *volume.Spec {
	mode := v1.PersistentVolumeBlock
	s.PV.Spec.VolumeMode, s.Block = &mode, true
	return s
}

// A driver may remove the staging directory and then fail, because the device is still open. Only the
// answer OK ends the calls, also in an agent that was restarted meanwhile.
func TestAVolumeIsUnstagedUntilTheDriverHasAnsweredOK(t *testing.T) {
	for name, spec := range map[string]func() *volume.Spec{
		"file system": func() *volume.Spec { return persistent("vol-1") },
		"block":       func() *volume.Spec { return blockOf(persistent("vol-1")) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restart=%t", name, restart), func(t *testing.T) {
				w := newWorld(t, csi.Config{})
				req := w.request(t, spec())
				require.NoError(t, w.Stage(t.Context(), req))
				_, err := w.SetUp(t.Context(), req)
				require.NoError(t, err)
				require.NoError(t, w.TearDown(t.Context(), req.Place))
				staging := w.driver.Volume("vol-1").Staged
				w.driver.FailAfter("NodeUnstageVolume", status.Error(codes.Internal, "device is open"), 2)
				for range 2 {
					require.ErrorContains(t, w.Unstage(t.Context(), req.Spec), "device is open")
					require.NoError(t, os.RemoveAll(staging))
					if restart {
						w.restart(t)
					}
				}
				require.NoError(t, w.Unstage(t.Context(), req.Spec))
				assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
				require.NoError(t, w.Unstage(t.Context(), req.Spec), "it is not staged")
				assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages, "nothing is left that shows a call")
				left, err := filepath.Glob(filepath.Join(w.root, "plugins/kubernetes.io/csi/*/*"))
				require.NoError(t, err)
				for _, path := range left {
					assert.NotContains(t, path, "pv-of-vol-1")
					assert.NotContains(t, path, driverName)
				}
			})
		}
	}
}

// An earlier call may have staged the volume. A later call that fails with a final code does not revert
// it: the data that shows the first call stays, and the volume is unstaged.
func TestAFailedStageDoesNotHideAnEarlierOne(t *testing.T) {
	for name, spec := range map[string]func() *volume.Spec{
		"file system": func() *volume.Spec { return persistent("vol-1") },
		"block":       func() *volume.Spec { return blockOf(persistent("vol-1")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, csi.Config{})
			req := w.request(t, spec())
			require.NoError(t, w.Stage(t.Context(), req))
			_, err := w.SetUp(t.Context(), req)
			require.NoError(t, err)
			staging := w.driver.Volume("vol-1").Staged
			if !req.Spec.Block {
				require.NoError(t, w.mounter.Unmount(staging)) // a driver that mounts nothing at the staging path
			}
			w.restart(t)
			w.driver.Fail("NodeStageVolume", status.Error(codes.InvalidArgument, "no"))
			require.Error(t, w.Stage(t.Context(), req))
			require.NoError(t, w.TearDown(t.Context(), req.Place))
			assert.Empty(t, w.driver.Volume("vol-1").Published, "the driver has unpublished it")
			require.NoError(t, w.Unstage(t.Context(), req.Spec))
			assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
		})
	}
}

// Data of a device that was never staged is no reason to wait for a driver.
func TestADeviceWithoutStagingIsForgottenWithoutItsDriver(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	req := w.request(t, blockOf(persistent("vol-1")))
	require.NoError(t, w.Stage(t.Context(), req))
	_, err := w.SetUp(t.Context(), req)
	require.NoError(t, err)
	require.NoError(t, w.TearDown(t.Context(), req.Place))
	w.Deregister(t.Context(), driverName)
	require.NoError(t, w.Unstage(t.Context(), req.Spec))
	assert.NoDirExists(t, filepath.Join(w.root, "plugins/kubernetes.io/csi/volumeDevices", req.Spec.PV.Name))
}

// A volume whose device is open is reported as in use until it is unstaged, also after a restart: the
// control plane does not detach it.
func TestAVolumeIsInUseUntilItIsUnstaged(t *testing.T) {
	w := newWorld(t, csi.Config{})
	claims := pvClaims{}
	claims.add("data", v1.PersistentVolumeFilesystem)
	m, stop := w.managed(t, claims)
	pod := claims.podOf("u1", "data")
	_, err := m.Mount(t.Context(), pod)
	require.NoError(t, err)
	w.driver.FailAfter("NodeUnstageVolume", status.Error(codes.Internal, "device is open"), 1000)
	require.NoError(t, m.Unmount(t.Context(), pod))
	stop()
	w.restart(t)
	m, _ = w.managed(t, claims)
	assert.Eventually(t, func() bool { return !m.HasVolumes(pod.UID) }, time.Minute, time.Millisecond)
	assert.Equal(t, []v1.UniqueVolumeName{"kubernetes.io/csi/" + driverName + "^vol-1"}, m.VolumesInUse())
	w.driver.FailAfter("NodeUnstageVolume", nil, 0)
	assert.Eventually(t, func() bool { return len(m.VolumesInUse()) == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, w.driver.Volume("vol-1").Unstages)
}
