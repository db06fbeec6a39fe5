// Package cpu allocates exclusive CPUs to containers of Guaranteed pods that request
// whole CPUs.
//
// # Behavior
//
// [Take] selects CPUs from those that are free; the [Manager] applies it to the NUMA
// nodes of a hint, returns hints, stores the allocations in the kubelet's checkpoint and
// updates running containers when the shared pool changes. Selection is a pure function
// of machine, options and request. With the policy "none" the Manager does nothing.
//
// With [Options].PodLevel also Guaranteed pods with pod-level resources have exclusive CPUs: single
// containers of them, or the pod as a whole, whose CPUs are divided among its containers.
//
// # Usage
//
//	manager, err := cpu.Open(cpu.Config{
//		Machine: machine, Policy: cpu.Static, ReservedMilli: 500,
//		Store: state.File("/var/lib/kubelet/" + cpu.StateFile), Running: running,
//		Runtime: runtime,
//	})
//	// pass it to topology.NewManager as a provider, and run it:
//	err = manager.Run(ctx)
//	// when a container is created:
//	cpus, exclusive := manager.CPUs(pod.UID, "web")
//
// # Concurrency
//
// All methods except Run and Reconcile are safe for concurrent use. The store is called
// with a lock held, one call at a time; hooks and the Runtime are called without locks.
//
// # Guarantees and limits
//
//   - No CPU is allocated to two pods, and no reserved CPU is allocated. Freed CPUs
//     return to the shared pool. Equal requests in equal states give equal results.
//   - An allocation that cannot be saved is not made.
//   - A checkpoint of another policy or machine, or a corrupt one, is repaired from its
//     content and from the running containers, and one copy of it is kept. Open returns
//     an error only if a container runs on CPUs that cannot be allocated to it; the error
//     names the container.
//   - A change of the shared pool is applied to containers at once; failures are retried
//     every 10 seconds.
//
// # Differences from the kubelet
//
//   - A kubelet refuses to start with a checkpoint of another policy or machine;
//     Config.RefuseForeign restores that.
//   - distribute-cpus-across-cores takes one thread of each core also on machines that
//     number the threads of a core consecutively, and prefers idle cores.
//   - The remaining CPUs in a cache are first taken from cores that are in use.
//   - Containers reuse the CPUs of init containers first, so that a pod holds no more CPUs
//     than its request. With a kubelet it may hold those of its init containers as well
//     until it is removed (kubernetes/kubernetes 112228).
//   - full-pcpus-only counts only whole free cores, also on machines with different cores
//     or offline threads.
//   - With strict-cpu-reservation and an empty shared pool, containers share the reserved
//     CPUs; with the kubelet they run on all CPUs.
//   - Pinned containers are unpinned when the policy is changed to none.
//
// # Testing
//
// Rules by name, a golden file of decisions on twelve machines, invariants on random pods
// under every policy; every bit of a checkpoint is flipped once, and the decoder is
// fuzzed.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package cpu
