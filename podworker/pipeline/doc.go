// Package pipeline is the podworker.Handler of a node: it applies the subsystems of the node
// to one pod, in the kubelet's order.
//
// # Behavior
//
// Sync, Terminate and Cleanup are lists of named steps: Sync admits the pod, reports its status,
// creates its cgroup and mirror pod, mounts its volumes, starts its probes and syncs its containers;
// see the constants for all of them. The name of the current step is part of the snapshot of the pod
// worker. A failed step ends the call, which the pod worker retries from the first step on; every step
// has no effect if it was completed before. Config.Steps inserts further steps into the lists.
//
// # Usage
//
// Construct a Pipeline with New and pass it to podworker.New as the Handler; package agent does
// so, and a function in Config.Adjust of it sets Steps. Every subsystem but the runtime may be nil and is
// then left out.
//
// A resource that a step acquires in Sync is released by another step in Cleanup, next to
// [FinishPod]. Cleanup is not called for pods that were terminated as orphans, so resources that
// outlive the agent are also released by a [podworker.Retainer].
//
// # Concurrency
//
// A Pipeline is safe for concurrent use. Its subsystems are called concurrently for different
// pods and sequentially for one pod.
//
// # Guarantees and limits
//
//   - A pod that was rejected is not passed to another subsystem.
//   - Volumes are mounted before a container starts, and unmounted after all containers have
//     terminated; the cgroup is removed last.
//   - At its activeDeadlineSeconds a pod fails in any step, and the step is canceled.
//   - Resource claims are unprepared before a terminal phase is reported.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package pipeline
