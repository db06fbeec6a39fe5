// Package volumetest has what tests of volumes need on any machine, without
// root: a [Mounter] in memory, a [Plugin] whose set-ups fail, hang and wait on
// demand, and [TestPlugin], the suite that every volume.Plugin passes, also one
// of yours.
//
//	func TestMyPlugin(t *testing.T) {
//		mounter := new(volumetest.Mounter)
//		volumetest.TestPlugin(t, volumetest.Suite{
//			New:     func(root string) volume.Plugin { return myplugin.New(mounter) },
//			Spec:    &volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: …}},
//			Mounter: mounter,
//		})
//	}
package volumetest
