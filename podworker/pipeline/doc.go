// Package pipeline is the podworker.Handler of a node: it applies the subsystems of the node
// to one pod, in the kubelet's order.
//
// # Behavior
//
// Sync admits the pod, allocates its resources, reports its status, waits for the network,
// creates the pod's cgroup and mirror pod, mounts its volumes, starts its probes and syncs its
// containers. Terminate stops the containers and unprepares resource claims; Cleanup unmounts
// volumes and removes the cgroup. A failed step is retried by the pod worker, from the first
// step on; every step has no effect if it was completed before.
//
// # Usage
//
// Construct a Pipeline with New and pass it to podworker.New as the Handler; package agent does
// so. Every subsystem but the runtime may be nil and is then left out.
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
