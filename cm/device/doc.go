// Package device gives the devices of device plugins, API v1beta1, to containers.
//
// # What it decides
//
// Plugins register at a socket and tell which devices they have. [Choose] says which
// of them a container gets, [Hints] from which NUMA nodes they could come. A
// [Manager] serves the plugins, keeps who has what in the file of the kubelet, asks
// plugins for the use of devices, and tells what they want of a container.
//
// # Usage
//
//	manager, err := device.Open(device.Config{Dir: "/var/lib/kubelet/device-plugins", Nodes: machine.AllNodes()})
//	// hand it to topology.NewManager as a provider, and run it:
//	err = manager.Run(ctx)
//	// when a container is made, and when it is started:
//	err = manager.Ensure(ctx, pod, c)
//	options, err := manager.Options(pod.UID, c.Name)
//	err = manager.PreStart(ctx, pod, c)
//
// # Concurrency
//
// Methods may be called from any goroutine; Run once. One container gets devices at
// a time: the others wait while a plugin answers, for up to Config.CallTimeout, and
// while the state is written. No other call waits for the disk but one that finds
// changes to write while nothing is being written.
//
// # Guarantees and limits
//
//   - No device is given to two containers but of one pod, one after the other; what
//     the plugin did not agree to, or could not be saved, is not given.
//   - What a plugin says is checked: IDs that are not free are ignored, lists above 16
//     MiB end it, calls have a deadline. The others go on.
//   - A container that has its devices keeps them: no plugin is asked again when the
//     agent is started anew, or the container is (F-52).
//   - A state that can't be used is put aside and logged. What containers that run
//     have is taken from Config.Adopt then.
//
// # Differences from the kubelet
//
//   - A pod whose plugin is not there waits for it (F-51); Config.RefuseLate refuses it
//     at once, as the kubelet does (nq-19).
//   - Allocate has a deadline. A plugin that does not say what it prefers is done
//     without.
//   - Plugins register at the socket only; the directory of the plugin watcher (plg-1)
//     is not followed.
//   - After a boot of the node what pods had is asked for again, and is other devices
//     if those are gone (Config.Runs, dev-10).
//   - The endpoint of a plugin has to be a name in the directory.
//
// # Testing
//
// Package devicetest has a real plugin, with which the tests go through registration,
// allocation, health, restarts of either side, lies and silence; every bit of a state
// is flipped once, and the decoder fuzzed.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package device
