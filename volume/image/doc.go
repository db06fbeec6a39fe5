// Package image is the plugin of image volumes: the files of an OCI image.
//
// # What it decides
//
// Nothing is mounted here: the container runtime mounts the image, which is pulled
// before the container is made (vol-60); see runtime/cri/images. The plugin is there so
// that the manager knows the kind.
//
// # Usage
//
//	plugin := new(image.Plugin)
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
// The volume is read-only, and never set up again.
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
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package image
