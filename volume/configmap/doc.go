// Package configmap implements the volume.Plugin of configMap volumes.
//
// # Behavior
//
// The content: the files that volume/payload creates from a ConfigMap, written by volume/atomic to a
// directory on disk and mounted read-only into containers.
//
// # Usage
//
//	plugin, err := configmap.New(configmap.Config{Objects: objects, Mounter: volume.NewMounter(true)})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - Nothing is written before the ConfigMap has been read, and an update is atomic.
//   - The volume is updated after volume.Manager.ObjectChanged and at each sync of the pod.
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
package configmap
