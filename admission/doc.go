// Package admission decides whether a pod fits a node: pure functions of the pod,
// the admitted pods, and a few facts about the node.
//
// # What it decides
//
// [Check] compares a pod with the node's operating system, name, labels, host
// ports, taints and resources, and returns every reason why it may not run there
// (L-62), in the kubelet's order and with its reasons (adm-3, adm-5). [Fit] is the
// part about resources, which alone applies to resizes. [Victims] chooses the pods
// that a critical pod preempts. [ForNode] joins the three.
//
// Nothing here has side effects, so that a call is a dry run (L-63), and no object
// of a cluster is needed: a [Node] is a few facts (L-64).
//
// # Usage
//
// The pods must be checked one at a time against those admitted before, else two
// could be given the same resources; allocation.Manager does that:
//
//	allocations, err := allocation.Open(allocation.Config{Admit: admission.ForNode(node, terminating), …})
//
// The manager is a podworker.Admitter. All admitters of a node; the managers come last
// because they allocate what they admit:
//
//	podworker.Admitters{evictions, engine, allocations, shutdowns, managers, admission.IgnoredFields(record)}
//
// # Concurrency
//
// All functions may be called concurrently; none changes its arguments.
//
// # Guarantees and limits
//
//   - A pod is admitted if there is no reason against it: an empty Node admits all
//     pods but those without containers, those with resource claims, and those that
//     select other labels.
//   - Devices, topology, node pressure and shutdown are not checked here: other
//     packages have Admitters for them (adm-1).
//   - The requests of a pod are those of its spec, with its overhead. Callers pass
//     pods with their allocated resources in the spec.
//
// # Differences from the kubelet
//
// All reasons are returned, not only the first. Terms that cannot be parsed match
// nothing, and the reason names the parse error. A pod waits for terminating pods
// whose resources it needs instead of running together with them.
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
