// Package admission says whether a pod fits a node: pure functions of the pod,
// the pods that are there, and what is known of the node.
//
// # What it decides
//
// [Check] holds a pod against the node's operating system, name, labels, host
// ports, taints and resources, and returns every reason why it may not run there
// (L-62), in the kubelet's order and with its reasons (adm-3, adm-5). [Fit] is
// the part about resources, which is all that a resize is asked about. [Victims]
// says which pods give way to a critical one.
//
// Nothing here has side effects, so that asking is a dry run (L-63), and no
// object of a cluster is needed: a [Node] is a few facts (L-64).
//
// # Usage
//
// Ask with the pods that were let in as the others, one pod at a time, else two
// may be given the same room; allocation.Manager does that:
//
//	allocation.Config{Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
//		for _, failure := range admission.Check(req.Pod, req.Others, node) {
//			return &failure.Rejection // the first one (adm-9)
//		}
//		return nil
//	}}
//
// # Concurrency
//
// Functions of values: they may be called from anywhere, and change nothing that
// they are given.
//
// # Guarantees and limits
//
//   - A pod is admitted if there is no reason against it: an empty Node admits
//     all but those that ask for another node, labels or another system.
//   - Devices, dynamic resources, topology, and what eviction or shutdown have to
//     say are not known here: they are Admitters of their own (adm-1).
//   - What a pod asks for is what its spec says, with its overhead: give it with
//     what was allocated to it.
//
// # Differences from the kubelet
//
// All reasons are returned, not only the first. Terms that cannot be parsed match
// nothing and are a reason that says why.
//
// # Testing
//
// Tables of pods and nodes.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package admission
