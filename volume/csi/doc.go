// Package csi implements the volume.Plugin of volumes of CSI drivers: persistent and inline ones.
//
// # Behavior
//
// The package determines the calls to the driver and their requests: NodeStageVolume once per node,
// NodePublishVolume for each pod, their counterparts, NodeExpandVolume, NodeGetVolumeStats and
// NodeGetVolumeHealth. Drivers register through volume/csi/register; a [Plugin] is a
// register.Handler. [Plugin.Run] updates the maximum number of volumes of the drivers.
//
// # Usage
//
//	plugin, err := csi.New(csi.Config{
//		RootDir: "/var/lib/kubelet", NodeName: name, Mounter: volume.NewMounter(true), Drivers: client,
//	})
//	watcher, err := register.New(register.Config{Dir: "/var/lib/kubelet/plugins_registry",
//		Handlers: map[string]register.Handler{register.CSIPlugin: plugin}})
//	go watcher.Run(ctx)
//	go plugin.Run(ctx)
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires. Drivers may register and deregister at any time.
//
// # Guarantees and limits
//
//   - A call times out after 2 minutes (Config.Timeout).
//   - A volume is published only after NodePublishVolume has returned OK, even if something is mounted
//     at the target.
//   - Before a call to the driver, the description of the volume is written to vol_data.json in the
//     kubelet's format, so that the kubelet and this agent can replace each other. As long as it
//     exists, the counterpart of the call is due: a missing directory is no evidence.
//   - A directory is removed only if it is empty and not a mount point.
//   - Without an API server (Config.Drivers is nil) the defaults of CSIDriver apply, volumes are not
//     attached, and inline volumes are permitted.
//   - Errors do not contain secrets.
//
// # Differences from the kubelet
//
//   - The health of the driver's storage (NodeGetStorageHealth, CSINode status.storageHealth) is not
//     read.
//   - A limit (nodeAllocatableUpdatePeriodSeconds of the CSIDriver) is updated at once after a failed
//     attachment, as in the kubelet, and also after a call of the node service has failed with
//     ResourceExhausted.
//   - NodeUnstageVolume is called for a block volume also if the driver has removed the staging path.
//   - The link of a block volume points to the device itself, not to a loop device.
//
// # Testing
//
// Against volume/csi/csitest, a driver that serves the CSI API on a socket:
// volumetest.TestPlugin, and a test for each rule.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package csi
