// Package local implements the volume.Plugin of local persistent volumes: a directory or a block
// device of one node.
//
// # Behavior
//
// A directory is bind-mounted into the pod's directory. A device is formatted if it is empty, mounted
// once per node and bind-mounted from there, or passed to containers as a device.
//
// # Usage
//
//	plugin, err := local.New(local.Config{
//		RootDir: "/var/lib/kubelet", Mounter: volume.NewMounter(true), Exec: exec.New(),
//	})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - The content outlives the pod: nothing is removed through the mount.
//   - Only a device without any signature is formatted.
//   - The first pod that mounts the volume sets its fsGroup. A warning event is recorded for a pod with
//     another fsGroup while the volume is in use.
//
// # Differences from the kubelet
//
// None known.
//
// # Testing
//
// volumetest.TestPlugin, a test for each rule, and bind mounts if the test runs as root.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package local
