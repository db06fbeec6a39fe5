// Package volumetest has what tests of volumes need on any machine, without
// root: a [Mounter] in memory, a [Plugin] whose set-ups fail, hang and wait on
// demand, [Objects], and [TestPlugin], the suite that every volume.Plugin passes,
// also one of yours.
//
// # What it decides
//
// What a plugin has to do: knows its own volumes and no others, may be asked twice,
// by many pods at once and by another agent after a restart, finishes what was left
// half done, and leaves nothing behind.
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
// All methods may be called from any goroutine. Fields are set before the first call,
// but for Mounter.Fault between two of a test's steps.
//
// # Guarantees and limits
//
// A Mounter knows what is mounted where, and keeps no files apart: what is written
// to a mount point lies in the directory.
//
// # Differences from the kubelet
//
// The kubelet's plugins have tests of their own each, and no suite.
//
// # Testing
//
// The Plugin of this package passes the suite, with mounts and as a block device; so
// does each plugin of this house.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package volumetest
