// Package local is the plugin of local persistent volumes: a directory or a block device
// of one node.
//
// # What it decides
//
// A directory is bound into the pod's. A device is formatted if it is empty, mounted once
// on the node, and bound from there; or handed to containers as it is (vol-59).
//
// # Usage
//
//	plugin, err := local.New(local.Config{RootDir: "/var/lib/kubelet", Mounter: mount.New(""), Exec: exec.New()})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - What is in the volume outlives the pod: nothing is removed through its mount.
//   - A device with anything on it is not formatted.
//   - The owners of files are set by the first pod that mounts the volume; one that asks
//     for another group while it is in use is warned.
//
// # Differences from the kubelet
//
// None known.
//
// # Testing
//
// volumetest.TestPlugin, each rule by number, and bind mounts where the test is root.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package local
