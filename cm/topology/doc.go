// Package topology reads the CPU and memory topology of a machine and aligns the
// resources of containers to NUMA nodes. Its decisions are pure functions, so that
// schedulers and simulators can use it on its own.
//
// # Behavior
//
// [Read] reads the machine from sysfs. Providers of CPUs, memory and devices return
// [Hints]: the NUMA nodes from which they could allocate. [Merge] determines the nodes
// that suit all of them, and whether the [Policy] admits the pod with these. A [Manager]
// queries the providers for each container or for the pod as a whole and has them
// allocate, all or nothing.
//
// # Usage
//
//	machine, err := topology.Read(os.DirFS("/"))
//	manager, err := topology.NewManager(topology.Config{
//		Machine: machine, Policy: topology.Restricted,
//		Providers: []topology.Provider{devices, cpus, memory},
//	})
//	if err := manager.Admit(ctx, pod); err != nil {
//		// a *runtime.Rejection: its reason and message go into the pod's status
//	}
//
// # Concurrency
//
// A [Machine] is immutable and the functions are pure. A Manager admits one pod at a
// time; pods that request nothing from the providers do not wait.
//
// # Guarantees and limits
//
//   - The same hints give the same result in any order.
//   - A pod that is rejected keeps no allocation, unless it had one before Admit.
//   - Every set of NUMA nodes is considered: up to eight nodes by default, see
//     Options.MaxNodes, and never more than 64.
//   - A list of more than 65536 CPUs is an error.
//
// # Differences from the kubelet
//
//   - The time of merging depends on the number of sets of nodes, not on the product of
//     the numbers of hints.
//   - Providers may report that requested resources are not available yet; the pod is
//     then admitted later.
//   - A pod whose allocation fails releases its allocations at once.
//   - NUMA nodes without CPUs are part of the hints for CPUs, so that these can be merged
//     with hints for memory.
//   - The number of threads per core is the number of the largest core. Where sysfs reports no
//     caches, one per socket is assumed.
//
// # Testing
//
// Twelve machines of package topologytest are read and compared with a golden file;
// merging is compared with an exhaustive search.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package topology
