// Package volumetest provides fakes for tests of volumes, which do not require root: a [Mounter] in
// memory, a [Plugin] with faults, and [Objects]. [TestPlugin] is a conformance suite for implementations
// of volume.Plugin.
//
// # Behavior
//
// TestPlugin checks that a plugin supports only its own volumes, is idempotent and safe for concurrent
// use by pods, completes or reverts an interrupted SetUp after a restart, and removes everything.
//
// # Usage
//
//	func TestMyPlugin(t *testing.T) {
//		mounter := new(volumetest.Mounter)
//		volumetest.TestPlugin(t, volumetest.Suite{
//			New:     func(root string) volume.Plugin { return myplugin.New(mounter) },
//			Spec:    &volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: …}},
//			Mounter: mounter,
//		})
//	}
//
// # Concurrency
//
// All methods are safe for concurrent use. Fields must be set before the first call, except that
// Mounter.Fault may be changed while no call is in progress.
//
// # Guarantees and limits
//
// A Mounter records mounts but has no file systems: files written to a mount point are in the directory.
//
// # Differences from the kubelet
//
// The kubelet has no conformance suite for plugins.
//
// # Testing
//
// The Plugin of this package passes the suite, with mounts and as a block device; so
// do all plugins of this repository.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package volumetest
