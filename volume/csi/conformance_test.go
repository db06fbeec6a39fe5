package csi_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/csitest"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

const driverName = "test.csi.example.com"

func TestThePluginKeepsTheContract(t *testing.T) {
	device := persistent("vol-1")
	block := v1.PersistentVolumeBlock
	device.PV.Spec.VolumeMode, device.Block = &block, true
	for _, c := range []struct {
		name    string
		spec    *volume.Spec
		without []csipb.NodeServiceCapability_RPC_Type
	}{
		{"persistent", persistent("vol-1"), nil},
		{"persistent, not staged", persistent("vol-1"), []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}},
		{"inline", inline(), nil},
		{"block", device, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			mounter := new(volumetest.Mounter)
			driver := serve(t, &csitest.Driver{Name: driverName, Dir: t.TempDir(), Mounter: mounter, Without: c.without})
			volumetest.TestPlugin(t, volumetest.Suite{
				New: func(root string) volume.Plugin {
					p := plugin(t, csi.Config{RootDir: root, Mounter: mounter})
					require.NoError(t, p.Register(t.Context(), driverName, driver.socket, []string{"1.0.0"}))
					return p
				},
				Spec: c.spec, Mounter: mounter, ReadOnly: true,
			})
			assert.Empty(t, driver.InUse())
		})
	}
}

// A served is a driver that runs.
type served struct {
	*csitest.Driver
	root, socket string
	stop         func()
}

// serve runs a driver until the test ends, or stop is called.
func serve(t *testing.T, d *csitest.Driver) served {
	t.Helper()
	root, err := os.MkdirTemp("", "csi") // a socket's path is short
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, d.Run(ctx, root)) })
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(func() { stop(); assert.NoError(t, os.RemoveAll(root)) })
	s := served{d, root, filepath.Join(root, "plugins", d.Name, "csi.sock"), stop}
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(root, "plugins_registry", d.Name+"-reg.sock"))
		return err == nil
	}, time.Minute, time.Millisecond)
	return s
}

func plugin(t *testing.T, cfg csi.Config) *csi.Plugin {
	t.Helper()
	cfg.NodeName = "node-1"
	p, err := csi.New(cfg)
	require.NoError(t, err)
	return p
}

func persistent(handle string) *volume.Spec {
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
			Driver: driverName, VolumeHandle: handle, FSType: "ext4", VolumeAttributes: map[string]string{"tier": "gold"},
		}},
	}}
	pv.Name = "pv-of-" + strings.ReplaceAll(handle, "/", "-")
	return &volume.Spec{Volume: &v1.Volume{Name: "data"}, PV: pv}
}

func inline() *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: driverName, VolumeAttributes: map[string]string{"size": "1Gi"},
	}}}}
}
