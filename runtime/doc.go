// Package runtime holds the nouns of a node (pods, sandboxes, containers and
// their states) and the contract [Runtime] that everything which runs pods
// fulfils.
//
// # What it decides
//
// Nothing: it is the vocabulary that pleg, podworker, status and the others
// share, so that none of them imports another, and none knows what runs the
// containers. Package runtime/cri implements the contract over any CRI
// endpoint and gives it the kubelet's semantics; runtime/process supplies a
// CRI runtime of plain host processes; runtime/runtimetest has one in memory.
// A backend that takes whole pods (a cloud API, a VM manager) implements
// Runtime directly; test/cloud is one.
//
// # Vocabulary
//
// A pod is known by its UID, here and in every other package; names are for
// people. A sandbox is what the containers of a pod share (a network, at
// least); a pod can have several over its life, of which the newest counts. A
// container here is one instance: a restart makes a new one with a new ID,
// with Attempt one higher. A runtime keeps exited instances until they are
// collected, because exit codes and logs are read from them.
//
// # The life of a pod
//
// The caller owns the loop, the runtime owns the steps:
//
//	for {
//		status, err := rt.PodStatus(ctx, pod.UID) // look
//		res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: status}) // one step
//		// wait for a change (package pleg), for res.RetryAt, or for a new spec
//	}
//	err := rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod}) // the end
//
// # Guarantees
//
// Any implementation promises what the comments on [Lister] and [Syncer] say;
// runtimetest.TestRuntime checks those promises against a real value, and
// names the promise that was broken. docs/conformance.md lists its checks.
//
// # Concurrency
//
// All methods may be called from many goroutines at once. For one pod, SyncPod
// and KillPod are never called at the same time by a well-behaved caller
// (package podworker is one); looking is allowed at any time.
//
// # Differences from the kubelet
//
// The kubelet's own Runtime interface has 22 methods, including image,
// attach, checkpoint and garbage collection concerns. Here the required part
// has four; the rest are optional powers of one to three methods, found by type
// assertion, each with what to do without it: [Checker], [Watcher], [Execer],
// [GarbageCollector]; [StreamExecer], [Attacher], [PortForwarder] and
// [StreamServer]; [LogReader] and [LogRotator]; [StatsProvider] and
// [ImageFSReporter]; [FeatureReporter] and [CgroupDriverReporter];
// [Checkpointer], [ResourceUpdater]. A runtime that has a method but not the
// power behind it returns [ErrUnsupported], which means the same.
//
// The name shadows the standard library's runtime; a file that needs both
// renames the other one.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package runtime
