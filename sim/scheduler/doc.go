// Package scheduler chooses nodes for pods, with pure functions of the nodes and the pods on
// them.
//
// # Behavior
//
// A [Cluster] holds nodes and the pods on them. [Cluster.Place] returns the node for another
// pod with the filters and scores of the default profile of kube-scheduler: spec.nodeName,
// spec.unschedulable, taints, node selectors and node affinity, host ports, resources,
// topology spread constraints, and pod affinity and anti-affinity. If no node is feasible,
// the error has the message of kube-scheduler.
//
// # Usage
//
//	cluster := scheduler.NewCluster()
//	cluster.SetNode(node)
//	name, err := cluster.Place(pod)
//	if err == nil {
//		cluster.SetPod(pod, name)
//	}
//
// Pods should be placed in the order of [Compare]. Nothing is bound, and no API server is
// required: kube/fakenode connects it to one.
//
// # Concurrency
//
// A Cluster must not be used concurrently. Objects that are passed to it must not be modified
// afterwards; they are not modified by it.
//
// # Guarantees and limits
//
// The result depends only on the nodes, the pods and the labels of namespaces, not on the
// order in which they were added. Pods with equal labels and terms are counted together, so
// that the time of a placement depends on the number of nodes and of different pods, not on
// that of replicas.
//
//   - Volumes, resource claims and images are not considered.
//   - There is no preemption. A priority only affects Compare.
//   - Scheduling gates and spec.schedulerName are left to the caller.
//
// # Differences from kube-scheduler
//
// Of nodes with equal scores, the one with the fewest pods is chosen, then the
// first by name; kube-scheduler chooses a random one. All nodes are considered; kube-scheduler
// considers a part of large clusters. There are no default topology spread constraints.
//
// # Testing
//
// Tables of nodes and pods.
//
// # Stability
//
// Experimental: the API may change in any version.
package scheduler
