package csimigration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/volume"
)

// Every field of an inline volume, and its place in the CSI volume. The translation ignores diskName,
// storagePolicyID, the secretRef of cinder, and the readOnly of portworxVolume, which is its access mode.
func TestFieldsOfInlineVolumes(t *testing.T) {
	none := map[string]string{}
	for name, c := range map[string]struct {
		source v1.VolumeSource
		want   v1.CSIPersistentVolumeSource
	}{
		"gcePersistentDisk": {v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "pd", FSType: "xfs", Partition: 2, ReadOnly: true}},
			v1.CSIPersistentVolumeSource{Driver: "pd.csi.storage.gke.io", VolumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd", ReadOnly: true, FSType: "xfs", VolumeAttributes: map[string]string{"partition": "2"}}},
		"awsElasticBlockStore": {v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1", FSType: "xfs", Partition: 2, ReadOnly: true}},
			v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1", ReadOnly: true, FSType: "xfs", VolumeAttributes: map[string]string{"partition": "2"}}},
		"cinder": {v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: "id", FSType: "xfs", ReadOnly: true, SecretRef: &v1.LocalObjectReference{Name: "s"}}},
			v1.CSIPersistentVolumeSource{Driver: "cinder.csi.openstack.org", VolumeHandle: "id", ReadOnly: true, FSType: "xfs", VolumeAttributes: none}},
		"azureFile": {v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{SecretName: "s", ShareName: "share", ReadOnly: true}},
			v1.CSIPersistentVolumeSource{Driver: "file.csi.azure.com", VolumeHandle: "#s#share#data#prod", ReadOnly: true, VolumeAttributes: map[string]string{"sharename": "share"},
				NodeStageSecretRef: &v1.SecretReference{Namespace: "prod", Name: "s"}}},
		"vsphereVolume": {v1.VolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "path", FSType: "xfs", StoragePolicyName: "name", StoragePolicyID: "id"}},
			v1.CSIPersistentVolumeSource{Driver: "csi.vsphere.vmware.com", VolumeHandle: "path", FSType: "xfs", VolumeAttributes: map[string]string{"storagepolicyname": "name"}}},
		"azureDisk": {v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{
			DiskName: "disk", DataDiskURI: "uri", CachingMode: new(v1.AzureDataDiskCachingReadOnly), FSType: new("xfs"), ReadOnly: new(true), Kind: new(v1.AzureManagedDisk)}},
			v1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com", VolumeHandle: "uri", ReadOnly: true, FSType: "xfs",
				VolumeAttributes: map[string]string{"cachingmode": "ReadOnly", "fstype": "xfs", "kind": "Managed"}}},
		"portworxVolume": {v1.VolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "id", FSType: "xfs", ReadOnly: true}},
			v1.CSIPersistentVolumeSource{Driver: "pxd.portworx.com", VolumeHandle: "id", FSType: "xfs", VolumeAttributes: none}},
	} {
		got, err := csimigration.Translate(&volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: c.source}}, "prod")
		require.NoError(t, err, name)
		assert.Equal(t, &c.want, got.PV.Spec.CSI, name)
	}
}
