// Package hostpath implements the volume.Plugin of hostPath volumes: files and directories of the
// node.
//
// # Behavior
//
// The package decides whether the file at the path has the type that the pod requests, and whether to create it.
// Nothing is mounted: the container runtime bind-mounts the path.
//
// # Usage
//
//	plugin := new(hostpath.Plugin)
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - The file at the path is never removed, and its owner and mode are never changed.
//   - Paths that contain ".." are rejected.
//
// # Differences from the kubelet
//
//   - Paths that are relative, or have a zero byte, are rejected.
//
// # Testing
//
// volumetest.TestPlugin, and a test for each type.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package hostpath
