// Package dra prepares the ResourceClaims of pods with the plugins of drivers: dynamic
// resource allocation.
//
// # Behavior
//
// A scheduler allocates devices to claims and reserves the claims for pods. Before a
// sandbox of a pod is created, [Manager.PrepareResources] checks that and calls the drivers
// of the devices; [Manager.CDIDevices] returns the CDI devices with which a runtime
// creates a container; [Manager.UnprepareResources] reverts the preparation after the
// containers of the last pod with the claim have terminated. The drivers are called through
// [Plugins], which package registry implements for those that serve gRPC on sockets, as in a
// kubelet; simulations implement it in memory.
//
// # Usage
//
//	plugins, err := registry.New(registry.Config{Slices: slices}) // of cm/dra/registry
//	manager, err := dra.New(dra.Config{
//		Claims: claims, Plugins: plugins, Store: state.File(filepath.Join(root, dra.StateFile)),
//	})
//	watcher, err := register.New(register.Config{ // of volume/csi/register
//		Dir: "/var/lib/kubelet/plugins_registry", Handlers: map[string]register.Handler{register.DRAPlugin: plugins},
//	})
//	// run all three; for each pod:
//	err = manager.PrepareResources(ctx, pod)
//	names, err := manager.CDIDevices(ctx, pod, container) // into CreateContainer
//	err = manager.UnprepareResources(ctx, pod.UID)
//
// # Concurrency
//
// All methods are safe for concurrent use; each Run may be called once. Operations of pods
// that share a claim wait for each other, other operations do not. The drivers of a pod are
// called concurrently.
//
// # Guarantees and limits
//
//   - CDIDevices returns devices only if all drivers have prepared all claims of the pod.
//   - Each claim that may be prepared is in the checkpoint before its drivers are called,
//     and remains there until they have unprepared it: an agent that dies at any moment
//     leaves no claim prepared. Drivers must be idempotent, as the protocol requires.
//   - A claim that several pods use is prepared once, until its last pod has terminated.
//   - A driver that hangs, fails or returns invalid responses affects the pods with its
//     devices only. Calls have a deadline of 45 seconds.
//   - If no plugin of a driver is registered, pods with its devices do not start, and do not
//     finish terminating if it was called for them.
//   - Unless the API server confirms each time that the claim exists, is allocated and is
//     reserved for the pod, the drivers are not called.
//
// # Differences from the kubelet
//
//   - A driver that has prepared a claim is not called again because another driver of the
//     pod failed.
//   - A claim is also unprepared if its pod was removed by force while it was started: the
//     pod terminates without delay if no driver was called for it.
//   - A claim that was allocated again under its old UID is not used before its previous
//     allocation is unprepared.
//   - After the loss of the checkpoint claims are prepared again when a container of their
//     pod starts.
//
// # Testing
//
// The tests of the manager end the agent before and after each access to a driver,
// the API server and the disk; every bit of a checkpoint is flipped once, and the decoder is
// fuzzed.
//
// # Stability
//
// Experimental: the API will change.
package dra
