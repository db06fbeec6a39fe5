// Package allocation stores which resources are allocated to each pod of a node, and decides
// about in-place resizes.
//
// A pod has three sets of resources: those that its spec requests, those that the node has
// allocated, and those that the runtime has applied (actuated). This package decides about the
// second and stores it over restarts of the agent. All other components see a pod as
// [Manager.Allocated] returns it, with the allocated resources in its spec, so that a resize
// that was not allocated is not applied when a container restarts either.
//
// A pod whose spec differs from its allocation has a pending resize. [Manager.Retry] allocates
// it, or marks it Deferred (it does not fit now) or Infeasible (it is not possible on this node).
// A runtime engine applies the allocated resources in the order of [PlanResize]; [InProgress] reports
// whether the runtime has them.
//
// # Usage
//
//	m, err := allocation.Open(allocation.Config{Dir: dir, Admit: fits, Pods: table})
//	err = m.Run(ctx) // retries pending resizes until ctx is done
//
// A Manager is a pipeline.Allocation and a pipeline.Admitter. Its ResizeState(uid).Conditions() and
// ActuatedPodResources(uid) are for status.Facts.Resize. Call Prune after all sources have synced, and Retry
// for triggers that the Manager does not detect.
//
// A runtime engine applies a resize as follows:
//
//	actuated := allocation.Actuated(pod, observed, podLevel)
//	steps := allocation.PlanResize(actuated, pod, observed)
//	if err := allocation.CheckDecrease(steps, usage); err != nil { ... }
//	done, err := allocation.Actuate(ctx, steps, actuator)
//
// # Concurrency
//
// All methods are safe for concurrent use, but must not be called concurrently for the same pod,
// as podworker ensures. Decisions are made one at a time, so that no two pods are allocated the
// same resources. Config.Admit, Config.Record, Config.Changed and the hooks are called during a
// decision and must not call the Manager. Allocated, ResizeState and ActuatedPodResources do
// not wait for a decision. Pods passed to the Manager are not modified, and callers must not modify those that
// it returns.
//
// # Guarantees and limits
//
//   - A pod whose resize is not allocated keeps its resources.
//   - A checkpoint is written atomically before the allocation is returned. If the write fails,
//     that is logged and the allocation applies; after a restart it is decided again.
//   - An infeasible resize is not retried until the pod requests other resources or the agent
//     restarts.
//   - Whether a resize is in progress depends on the resources that the runtime reports; a
//     container without them counts as resized.
//   - A pod that runs without a checkpoint (it was adopted from another agent, or the checkpoint
//     is corrupt) is allocated the resources of its spec.
//   - An allocation lasts until it is released, which a Pipeline does after the pod was cleaned
//     up; until then a pending resize may still be allocated, even while the pod terminates.
//   - Claims, and resources other than requests and limits, stay as in the spec.
//
// # Differences from the kubelet
//
//   - There is a file per pod. A corrupt one is logged, counts as absent and is replaced by the
//     next allocation. The kubelet has one file for all pods and does not start if it is corrupt.
//   - Pods of an earlier agent keep their resources from the start, by their checkpoints, also
//     before their sources have synced; new pods cannot be allocated these.
//   - Actuated resources are read from the runtime (runtime.ContainerStatus.Resources), not from
//     a second checkpoint; only pod-level resources are stored here.
//   - Values that a cgroup cannot distinguish are equal, so that very small CPU requests and
//     limits do not leave a resize in progress (kubernetes/kubernetes#123441).
//   - A rejection that differs from the last one only in its message causes no event.
//   - A trigger for one pod causes decisions about all pending resizes in the same call.
//   - Events and messages include pod-level resources.
//   - A request above NodeConstraints.Allocatable is Infeasible, and Admit may reject others as
//     Infeasible. The messages of Infeasible are specific to this package.
//   - There are no feature gates: in-place resize of containers and pods is enabled;
//     NodeConstraints.NoResize disables it.
//
// # Testing
//
// Everything except Manager is a pure function. Retry is the synchronous step of Run and works
// in a testing/synctest bubble.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package allocation
