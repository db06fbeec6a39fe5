// Package device allocates the devices of device plugins, API v1beta1, to containers.
//
// # Behavior
//
// Plugins register at a socket and report their devices. [Choose] selects the devices of
// a container. A [Manager] serves the plugins, returns topology hints, stores the
// allocations in the kubelet's checkpoint, calls the plugins to allocate devices, and
// returns the container options that they require.
//
// # Usage
//
//	manager, err := device.Open(device.Config{Dir: "/var/lib/kubelet/device-plugins", Nodes: machine.AllNodes()})
//	// pass it to topology.NewManager as a provider, and run it:
//	err = manager.Run(ctx)
//	// when a container is created, and when it is started:
//	err = manager.Ensure(ctx, pod, c)
//	options, err := manager.Options(pod.UID, c.Name)
//	err = manager.PreStart(ctx, pod, c)
//
// # Concurrency
//
// Methods are safe for concurrent use. Run may be called once. Devices are selected for
// one container at a time and are then reserved; Allocate of a plugin is called for one
// container at a time. A call delays the containers that request devices of the same
// plugin, for up to Config.CallTimeout, and no others: Reserve waits 5 seconds at most for
// a plugin's preference, and not again within a minute. Methods other than Allocate do not
// wait for the disk, unless they find unsaved changes while nothing is being written.
//
// # Guarantees and limits
//
//   - No device is allocated to two containers, except successively to containers of one
//     pod. An allocation that the plugin rejects, or that cannot be saved, is not made.
//   - Input of plugins is checked: IDs that are not free are ignored, lists above 16 MiB
//     terminate the connection, calls have a deadline. Other plugins are not affected.
//   - A container keeps its devices: plugins are not called again when the agent or the
//     container restarts.
//   - A checkpoint that cannot be used is moved aside and logged. The devices of running
//     containers are then taken from Config.Adopt.
//
// # Differences from the kubelet
//
//   - A pod whose plugin has not registered waits for it. A kubelet rejects it at once;
//     Config.RefuseLate restores that.
//   - Allocate has a deadline. If GetPreferredAllocation fails, devices are allocated
//     without a preference.
//   - A plugin that does not answer does not delay the admission of pods that request no
//     device of it.
//   - Plugins register at the socket only; the directory of the plugin watcher is not
//     supported.
//   - After a reboot of the node devices are allocated again, and different ones if the
//     previous ones are gone (Pods.Ran).
//   - The endpoint of a plugin must be a file name in the directory.
//
// # Testing
//
// Package devicetest has a real plugin, with which the tests exercise registration,
// allocation, health, restarts of either side, invalid answers and timeouts; every bit of
// a checkpoint is flipped once, and the decoder is fuzzed.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package device
