// Package configmap is the plugin of configMap volumes.
//
// # What it decides
//
// The files are those that volume/payload makes of a ConfigMap (vol-51), written by
// volume/atomic into a directory on disk, which containers have read-only.
//
// # Usage
//
//	plugin, err := configmap.New(configmap.Config{Objects: objects, Mounter: mount.New("")})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - Nothing is written before the ConfigMap is known (vol-43), and what cannot be
//     written whole isn't written at all.
//   - A change of the ConfigMap is seen by the pod when the manager hears of it
//     (volume.Manager.ObjectChanged), and at each sync of the pod.
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
package configmap
