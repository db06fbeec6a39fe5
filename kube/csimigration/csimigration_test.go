package csimigration_test

import (
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/volume"
)

// vol-82
func TestVolumesOfReplacedPlugins(t *testing.T) {
	for _, c := range []struct {
		driver, handle string
		persistent     v1.PersistentVolumeSource
		inline         v1.VolumeSource
		inlineHandle   string // if it differs
		dir            string // of the inline volume
	}{
		{"ebs.csi.aws.com", "vol-1", v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}},
			v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}}, "", "ebs.csi.aws.com-vol-1"},
		{"pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd", v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "pd"}},
			v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "pd"}}, "", "pd.csi.storage.gke.io-pd"},
		{"disk.csi.azure.com", "/subscriptions/s/disks/d", v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/disks/d"}},
			v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/disks/d"}}, "", "~subscriptions~s~disks~d"},
		{"file.csi.azure.com", "#account#share#pv#secrets", v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{
			SecretName: "azure-storage-account-account-secret", ShareName: "share", SecretNamespace: new("secrets")}},
			v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{SecretName: "azure-storage-account-account-secret", ShareName: "share"}}, "#account#share#data#prod", "#account#share#data#prod"},
		{"cinder.csi.openstack.org", "id", v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "id"}},
			v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: "id"}}, "", "cinder.csi.openstack.org-id"},
		{"csi.vsphere.vmware.com", "[ds] dir/disk.vmdk", v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] dir/disk.vmdk"}},
			v1.VolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] dir/disk.vmdk"}}, "", "csi.vsphere.vmware.com-[ds] dir~disk.vmdk"},
		{"pxd.portworx.com", "id", v1.PersistentVolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "id"}},
			v1.VolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "id"}}, "", "pxd.portworx.com-id"},
	} {
		t.Run(c.driver, func(t *testing.T) {
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
			pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: c.persistent}}
			before := pv.DeepCopy()
			spec := &volume.Spec{Volume: &v1.Volume{Name: "data"}, Claim: claim, PV: pv, ReadOnly: true}
			got, err := csimigration.Translate(spec, "prod")
			require.NoError(t, err)
			assert.Equal(t, before, pv, "the volume is not modified")
			require.NotNil(t, got.PV.Spec.CSI)
			assert.Equal(t, c.driver, got.PV.Spec.CSI.Driver)
			assert.Equal(t, c.handle, got.PV.Spec.CSI.VolumeHandle)
			assert.Equal(t, "pv", got.DirName())
			assert.True(t, got.Migrated && got.ReadOnly && got.Claim == claim)
			again, err := csimigration.Translate(got, "prod")
			require.NoError(t, err)
			assert.Same(t, got, again, "it is translated once")

			got, err = csimigration.Translate(&volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: c.inline}}, "prod")
			require.NoError(t, err)
			if c.inlineHandle == "" {
				c.inlineHandle = c.handle
			}
			assert.Equal(t, c.inlineHandle, got.PV.Spec.CSI.VolumeHandle)
			assert.Equal(t, c.dir, got.DirName())
			assert.Equal(t, "data", got.Name())
			assert.Equal(t, v1.PersistentVolumeFilesystem, *got.PV.Spec.VolumeMode)
		})
	}
}

func TestOtherVolumesRemain(t *testing.T) {
	for _, spec := range []*volume.Spec{
		{Volume: &v1.Volume{VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}},
		{Volume: &v1.Volume{VolumeSource: v1.VolumeSource{NFS: new(v1.NFSVolumeSource)}}},
		{PV: &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: new(v1.CSIPersistentVolumeSource)}}}},
		{PV: new(v1.PersistentVolume)}, {},
	} {
		got, err := csimigration.Translate(spec, "prod")
		require.NoError(t, err)
		assert.Same(t, spec, got)
	}
	_, err := csimigration.Translate(&volume.Spec{Volume: &v1.Volume{VolumeSource: v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://vol-1"}}}}, "prod")
	require.ErrorContains(t, err, "failed to translate in-tree pv to CSI: ")
}

func TestThePluginsAreSorted(t *testing.T) {
	assert.Len(t, csimigration.Plugins(), 7)
	assert.True(t, slices.IsSorted(csimigration.Plugins()))
}

func Example() {
	inline := &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: "4711"}}}
	spec, err := csimigration.Translate(&volume.Spec{Volume: inline}, "default")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(spec.PV.Spec.CSI.Driver, spec.PV.Spec.CSI.VolumeHandle)
	// Output: cinder.csi.openstack.org 4711
}
