// Package nfs implements the volume.Plugin of nfs volumes: exports of NFS servers, persistent and
// inline.
//
// # Behavior
//
// The mount: type nfs, the mount options of the persistent volume, and ro if the volume is read-only.
// Each pod has a mount of its own.
//
// # Usage
//
//	plugin, err := nfs.New(nfs.Config{Mounter: volume.NewMounter(true)})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - The host must have the helper mount.nfs (package nfs-common or nfs-utils).
//   - A mount whose server does not respond blocks its goroutine; an unmount is forced after a minute.
//     Except for Stats, the plugin does not access such a mount on Linux 5.6 and later.
//   - A mount whose server has lost the export is unmounted, although it cannot be read.
//   - A directory is removed only if it is empty and not a mount point.
//   - fsGroup and SELinux labels are not applied: the server determines the ownership of files.
//
// # Differences from the kubelet
//
//   - A persistent volume is read-only also if the API object specifies readOnly, not only if the pod
//     does.
//   - A server or path that the mount program could interpret as an option, and a path that is not
//     absolute, are rejected.
//
// # Testing
//
// volumetest.TestPlugin, and tests with volumetest's mounter: sources, options, failures, stale mounts.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package nfs
