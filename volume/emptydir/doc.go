// Package emptydir is the plugin of emptyDir volumes: directories, or memory, that a
// pod has for as long as it lives.
//
// # What it decides
//
// A volume is a directory on the node's disk, a tmpfs (medium Memory), or a
// hugetlbfs (HugePages, HugePages-2Mi …). [Size] says how large a tmpfs may become
// (vol-45), [PageSize] which pages a hugetlbfs has (vol-46). Whether a volume on
// disk outgrows its sizeLimit is for eviction to see (vol-47).
//
// # Usage
//
//	plugin, err := emptydir.New(emptydir.Config{Mounter: mount.New(""), Allocatable: node.Allocatable})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - What a pod has in its volume survives restarts of the agent; it is removed by
//     TearDown alone.
//   - TearDown unmounts what is mounted in the volume before it removes anything.
//   - No quota is set for monitoring; usage is measured as du does.
//
// # Differences from the kubelet
//
//   - A tmpfs whose limit changes, because the pod was resized, is remounted with the
//     new one at the pod's next sync (F-47). One that holds more than that stays as it
//     is.
//
// # Testing
//
// volumetest.TestPlugin, each rule by number, and real mounts where the test is root.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package emptydir
