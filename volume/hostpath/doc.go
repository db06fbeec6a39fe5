// Package hostpath is the plugin of hostPath volumes: files and directories of the node
// itself.
//
// # What it decides
//
// Whether what is at the path is of the type that the pod asks for, and whether to make
// it (vol-49). Nothing is mounted here: the container runtime binds the path.
//
// # Usage
//
//	plugin := new(hostpath.Plugin)
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - What is at the path is never removed, and its owners and modes are never changed
//     (vol-50).
//   - Paths have no ".." (vol-50).
//
// # Differences from the kubelet
//
//   - Paths that are relative, or have a zero byte, are refused.
//
// # Testing
//
// volumetest.TestPlugin, and each type by number.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package hostpath
