// Package csimigration converts volumes of the cloud and storage plugins that Kubernetes has removed
// to volumes of the CSI drivers that replace them.
//
// # Behavior
//
// The driver and the parameters of a volume, by k8s.io/csi-translation-lib:
//
//	awsElasticBlockStore  ebs.csi.aws.com
//	azureDisk             disk.csi.azure.com
//	azureFile             file.csi.azure.com
//	cinder                cinder.csi.openstack.org
//	gcePersistentDisk     pd.csi.storage.gke.io
//	portworxVolume        pxd.portworx.com
//	vsphereVolume         csi.vsphere.vmware.com
//
// # Usage
//
//	volumes := volume.Config{PersistentVolumes: volume.PersistentVolumeConfig{Translate: csimigration.Translate}}
//	node := client.CSINode{Client: api, NodeName: name, MigratedPlugins: csimigration.Plugins()}
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Guarantees and limits
//
//   - A translated volume has a persistent volume, even if the pod specifies the volume inline.
//   - The driver must be installed in the cluster. Until it is registered on the node, the pod waits
//     with the error of volume/csi.
//   - The attach/detach controller attaches the volumes with CSI only if the CSINode lists the plugins:
//     use Translate together with Plugins.
//
// # Differences from the kubelet
//
//   - An inline vsphereVolume with a storagePolicyName is translated; the kubelet panics, since
//     k8s.io/csi-translation-lib 0.37.2 dereferences a nil pointer.
//
// # Testing
//
// Tables of all plugins, persistent and inline, and of all fields of inline volumes.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package csimigration
