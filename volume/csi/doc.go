// Package csi is the node's side of volumes that CSI drivers provide: persistent ones,
// and those that pods describe inline.
//
// # What it decides
//
// Which calls a volume takes, with which requests: NodeStageVolume once on the node,
// NodePublishVolume for each pod, their counterparts, NodeExpandVolume,
// NodeGetVolumeStats (vol-61 … vol-64, vol-67). Drivers make themselves known through
// volume/csi/register, whose Handler a [Plugin] is.
//
// # Usage
//
//	plugin, err := csi.New(csi.Config{RootDir: "/var/lib/kubelet", NodeName: name, Mounter: mount.New(""), Drivers: client})
//	watcher, err := register.New(register.Config{Dir: "/var/lib/kubelet/plugins_registry",
//		Handlers: map[string]register.Handler{register.CSIPlugin: plugin}})
//	go watcher.Run(ctx)
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says; drivers may come and go at any time.
//
// # Guarantees and limits
//
//   - Each call has 2 minutes (vol-61).
//   - A volume is ready only after the driver has answered NodePublishVolume with OK in
//     this process, whatever is mounted at the target.
//   - What a volume is, is written beside it before the driver is called, in the kubelet's
//     form, so that either takes over what the other has mounted (vol_data.json).
//   - A directory is removed only when nothing is mounted on it, and only if it is empty.
//   - Without an API server (Config.Drivers nil) drivers have the defaults of a CSIDriver,
//     nothing is attached, and volumes may be inline.
//   - Secrets are in no error.
//
// # Differences from the kubelet
//
//   - A volume's health comes from NodeGetVolumeHealth, of spec 1.13.
//   - A device is linked to directly, without a loop device that holds it.
//
// # Testing
//
// Against volume/csi/csitest, a driver that speaks the real API over its socket:
// volumetest.TestPlugin, and each rule by number.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package csi
