// Package downward is the plugin of downwardAPI volumes.
//
// # What it decides
//
// The files are those that volume/payload makes of the pod (vol-53), written by
// volume/atomic into memory, which containers have read-only.
//
// # Usage
//
//	plugin, err := downward.New(downward.Config{Allocatable: node.Allocatable, Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - Labels and annotations that change are seen at the pod's next sync.
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
package downward
