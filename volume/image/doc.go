// Package image implements the volume.Plugin of image volumes: the files of an OCI image.
//
// # Behavior
//
// The package decides nothing: the container runtime mounts the image, which runtime/cri/images
// pulls before the container is created. The plugin only makes the manager support the kind.
//
// # Usage
//
//	plugin := new(image.Plugin)
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
// The volume is read-only and is never refreshed.
//
// # Differences from the kubelet
//
// None.
//
// # Testing
//
// volumetest.TestPlugin.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package image
