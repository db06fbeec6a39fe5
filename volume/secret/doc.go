// Package secret is the plugin of secret volumes.
//
// # What it decides
//
// The files are those that volume/payload makes of a Secret (vol-52), written by
// volume/atomic into memory, which containers have read-only.
//
// # Usage
//
//	plugin, err := secret.New(secret.Config{Objects: objects, Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - Nothing is written before the Secret is known (vol-43), and what cannot be
//     written whole isn't written at all.
//   - A change of the Secret is seen by the pod when the manager hears of it
//     (volume.Manager.ObjectChanged), and at each sync of the pod.
//   - No secret is ever on a disk, in a log or in an error; with a kernel before 6.4
//     memory may be swapped out.
//   - A subPath of the volume never changes (vol-42).
//
// # Differences from the kubelet
//
// Those of volume/payload and volume/atomic.
//
// # Testing
//
// volumetest.TestPlugin, and each rule by number.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package secret
