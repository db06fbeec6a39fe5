package csi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// bound is a claim for one persistent volume.
type bound struct {
	claim *v1.PersistentVolumeClaim
	pv    *v1.PersistentVolume
}

func (b bound) PersistentVolumeClaim(context.Context, string, string) (*v1.PersistentVolumeClaim, error) {
	return b.claim, nil
}

func (b bound) PersistentVolume(context.Context, string) (*v1.PersistentVolume, error) {
	return b.pv, nil
}

func (bound) ClaimExpanded(context.Context, *v1.PersistentVolumeClaim, resource.Quantity) error {
	return nil
}

// The driver mounts a volume with the label of the pod if its CSIDriver permits that; other
// volumes that can be written to are relabeled by the runtime.
func TestSELinuxLabels(t *testing.T) {
	const label = "system_u:object_r:container_file_t:s0:c1,c2"
	driver := func(mount *bool) *storagev1.CSIDriverSpec {
		return &storagev1.CSIDriverSpec{AttachRequired: ptr(false), SELinuxMount: mount}
	}
	for _, c := range []struct {
		name       string
		driver     *storagev1.CSIDriverSpec
		mode       v1.PersistentVolumeAccessMode
		readOnly   bool
		off        bool
		onePodOnly bool
		labelled   bool // by the mount
		relabel    bool // by the runtime
	}{
		{name: "ReadWriteOncePod, true", driver: driver(ptr(true)), mode: v1.ReadWriteOncePod, labelled: true},
		{name: "ReadWriteOncePod, false", driver: driver(ptr(false)), mode: v1.ReadWriteOncePod, relabel: true},
		{name: "ReadWriteOncePod, unset", driver: driver(nil), mode: v1.ReadWriteOncePod, relabel: true},
		{name: "ReadWriteOncePod, no CSIDriver", mode: v1.ReadWriteOncePod, relabel: true},
		{name: "ReadWriteOnce, true", driver: driver(ptr(true)), mode: v1.ReadWriteOnce, labelled: true},
		{name: "ReadWriteOnce, false", driver: driver(ptr(false)), mode: v1.ReadWriteOnce, relabel: true},
		{name: "ReadWriteMany, true", driver: driver(ptr(true)), mode: v1.ReadWriteMany, labelled: true},
		{name: "read-only, true", driver: driver(ptr(true)), mode: v1.ReadWriteOncePod, readOnly: true, labelled: true},
		{name: "read-only, false", driver: driver(ptr(false)), mode: v1.ReadWriteOncePod, readOnly: true},
		{name: "read-only, ReadWriteOnce", driver: driver(ptr(true)), mode: v1.ReadWriteOnce, readOnly: true, labelled: true},
		{name: "ReadWriteMany, true, one pod only", driver: driver(ptr(true)), mode: v1.ReadWriteMany, onePodOnly: true, relabel: true},
		{name: "SELinux is off", driver: driver(ptr(true)), mode: v1.ReadWriteOncePod, off: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, csi.Config{Drivers: &api{driver: c.driver, attachments: attached("vol-1")}})
			pv := persistent("vol-1").PV
			pv.Spec.AccessModes, pv.Spec.MountOptions = []v1.PersistentVolumeAccessMode{c.mode}, []string{"noatime"}
			claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeName: pv.Name}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}
			pv.Spec.ClaimRef = new(v1.ObjectReference)
			cfg := volume.Config{RootDir: w.root, Plugins: []volume.Plugin{w.Plugin}, Mounter: w.mounter, StatsPeriod: -1, PersistentVolumes: volume.PersistentVolumeConfig{Claims: bound{claim, pv}, SELinuxOnePodOnly: c.onePodOnly}}
			if !c.off {
				cfg.SELinuxLabel = func(*v1.SELinuxOptions) (string, error) { return label, nil }
			}
			m, err := volume.New(cfg)
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			wg.Go(func() { assert.NoError(t, m.Run(ctx)) })

			pod := volumetest.Request(t, w, inline()).Pod
			pod.Spec.SecurityContext = &v1.PodSecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c1,c2"}}
			pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ReadOnly: c.readOnly}}}}
			pod.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}}
			got, err := m.Mount(t.Context(), pod)
			require.NoError(t, err)
			flags := []string{"noatime"}
			if c.labelled {
				flags = append(flags, `context="`+label+`"`)
			}
			v := w.driver.Volume("vol-1")
			assert.Equal(t, flags, v.Stage.VolumeCapability.GetMount().MountFlags)
			require.Contains(t, v.Published, got["data"].Path)
			assert.Equal(t, flags, v.Published[got["data"].Path].VolumeCapability.GetMount().MountFlags)
			assert.Equal(t, c.relabel, got["data"].SELinuxRelabel)
			require.NoError(t, m.Unmount(t.Context(), pod))
		})
	}
}

// attached is the VolumeAttachment of a volume whose driver has no CSIDriver.
func attached(handle string) map[string]*storagev1.VolumeAttachment {
	return map[string]*storagev1.VolumeAttachment{
		fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driverName+"node-1"))): {Status: storagev1.VolumeAttachmentStatus{Attached: true}},
	}
}
