// Package secret implements the volume.Plugin of secret volumes.
//
// # Behavior
//
// The content: the files that volume/payload creates from a Secret, written by volume/atomic to a
// tmpfs and mounted read-only into containers.
//
// # Usage
//
//	plugin, err := secret.New(secret.Config{Objects: objects, Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - Nothing is written before the Secret has been read, and an update is atomic.
//   - The volume is updated after volume.Manager.ObjectChanged and at each sync of the pod.
//   - No secret is written to a disk, a log or an error. On kernels before 6.4 the tmpfs may be
//     swapped out.
//   - A subPath of the volume is not updated (rule vol-42).
//
// # Differences from the kubelet
//
// Those of volume/payload and volume/atomic.
//
// # Testing
//
// volumetest.TestPlugin, and a test for each rule.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package secret
