// Package downward implements the volume.Plugin of downwardAPI volumes.
//
// # Behavior
//
// The content: the files that volume/payload creates from the pod, written by volume/atomic to a tmpfs
// and mounted read-only into containers.
//
// # Usage
//
//	plugin, err := downward.New(downward.Config{Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - Changed labels and annotations are written at the next sync of the pod.
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
package downward
