// Package runtime defines the interface between an agent and whatever runs its pods, [Runtime], and
// the types of pods, sandboxes and containers that the other packages share.
//
// Package runtime/cri implements Runtime with the kubelet's semantics over any CRI endpoint;
// runtime/containers implements it over a backend that can run one container, or a group of them (a cloud
// API, a VM manager); runtime/process is a CRI runtime of plain host processes; runtime/runtimetest is a
// Runtime in memory.
//
// # Vocabulary
//
// A pod is identified by its UID; names are informative. A sandbox is the environment that the
// containers of a pod share, at least a network; a pod can have several over its lifetime, and the
// newest is used. A
// container is one instance: a restart creates a new one with a new ID and an incremented Attempt.
// A runtime keeps terminated instances until they are collected, because exit codes and logs are
// read from them.
//
// # Usage
//
// The caller runs the loop, the runtime takes the steps; see the package example.
//
//	for {
//		status, err := rt.PodStatus(ctx, pod.UID)
//		res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: status})
//		// wait for a change (package pleg), for res.RetryAt, or for a new spec
//	}
//	err := rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
//
// # Implementing a Runtime
//
// The comments on [Runtime] and [Lister] are the contract. runtimetest.TestRuntime checks it against
// an implementation and names each requirement that is not met; docs/conformance.md lists the
// checks.
//
// Everything else is optional, in interfaces of one to three methods, each documented with the
// behavior of its callers without it: [Checker], [Watcher], [Execer], [GarbageCollector];
// [StreamExecer], [Attacher], [PortForwarder] and [StreamServer]; [LogReader] and [LogRotator];
// [StatsProvider] and [ImageFSReporter]; [ImageStore]; [FeatureReporter] and
// [CgroupDriverReporter]; [Checkpointer], [PodCheckpointer], [ResourceUpdater]. A method that
// returns [ErrUnsupported] is equivalent to an interface that is not implemented. Callers find
// optional interfaces with compose.As, also those of a wrapped Runtime.
//
// # Concurrency
//
// All methods must be safe for concurrent use. For one pod, callers must not call SyncPod and
// KillPod concurrently (package podworker does not); Pods and PodStatus may be called at any time.
//
// # Differences from the kubelet
//
// The kubelet's Runtime interface has 22 methods, including images, attach, checkpoints and garbage
// collection. Here four are required.
//
// The name shadows the standard library's runtime; a file that needs both renames one.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package runtime
