// Package admission decides whether a pod fits a node, with pure functions of the pod, the
// admitted pods and the properties of the node.
//
// [Check] compares a pod with the node's operating system, name, labels, host
// ports, taints and resources, and returns every reason why it may not run there,
// in the kubelet's order and with its reasons. [Fit] is the part about resources, which
// alone applies to resizes. [ForNode] combines them, and selects the pods that a critical
// pod preempts.
//
// The functions have no side effects, so a call is a dry run. No cluster object is
// required: a [Node] is a struct of a few properties.
//
// # Usage
//
// Pods must be checked one at a time against those admitted before, otherwise two pods
// could be admitted for the same resources; allocation.Manager does that (ExampleCheck
// checks a single pod):
//
//	allocations, err := allocation.Open(allocation.Config{Admit: admission.ForNode(node, terminating), …})
//
// The manager is a pipeline.Admitter. These are all admitters of a node; the resource
// managers come last because they allocate resources for the pods that they admit:
//
//	pipeline.Admitters{evictions, engine, allocations, shutdowns, managers, admission.IgnoredFields(record)}
//
// # Concurrency
//
// All functions are safe for concurrent use and do not modify their arguments.
//
// # Guarantees and limits
//
//   - A pod is admitted if there is no reason against it: an empty Node admits all
//     pods except those without containers, those with resource claims, and those that
//     select other labels.
//   - Devices, topology, node pressure and shutdown are not checked here: other
//     packages have Admitters for them.
//   - The requests of a pod are the requests in its spec, with its overhead. Callers pass
//     pods with their allocated resources in the spec.
//
// # Differences from the kubelet
//
// All reasons are returned, not only the first, and the messages about the node's name, host ports
// and taints add which one it is. Terms that cannot be parsed match
// nothing, and the reason names the parse error. A pod waits for terminating pods
// whose resources it needs instead of running together with them. A resize of a critical
// pod preempts no others, as with the gate InPlacePodVerticalScalingSchedulerPreemption.
//
// # Testing
//
// Tables of pods and nodes.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package admission
