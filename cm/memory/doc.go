// Package memory allocates memory and huge pages of NUMA nodes to containers of
// Guaranteed pods.
//
// # Behavior
//
// A [Manager] selects the NUMA nodes of a container's memory, returns hints, and stores
// the allocations in the kubelet's checkpoint. The selection is a pure function of the
// state of the nodes and the request. With the policy "None" it does nothing.
//
// With [Config].PodLevel also Guaranteed pods with pod-level resources have memory of their own:
// single containers of them, or the pod as a whole, whose memory is divided among its containers.
//
// # Usage
//
//	manager, err := memory.Open(memory.Config{
//		Machine: machine, Policy: memory.Static,
//		Reserved: map[int]memory.Request{0: {v1.ResourceMemory: 1 << 30}},
//		Total:    memory.Request{v1.ResourceMemory: 1 << 30},
//		Store:    state.File("/var/lib/kubelet/" + memory.StateFile),
//	})
//	// pass it to topology.NewManager as a provider; when a container is created:
//	nodes := manager.Nodes(pod.UID, "web") // cpuset.mems
//
// # Concurrency
//
// All methods are safe for concurrent use. The store is called with a lock held, one call
// at a time.
//
// # Guarantees and limits
//
//   - No more than the available memory is allocated; a node that is part of a group of
//     several nodes has only blocks of that group (rule mem-3).
//   - An allocation that cannot be saved is not made.
//   - A checkpoint of another policy or machine, or a corrupt one, is repaired, and one
//     copy of it is kept. Open returns an error only if a container runs with memory that
//     no longer exists; the error names the container. The allocations of a corrupt
//     checkpoint are lost, because the runtime does not report them.
//   - It accounts for requests; the kernel enforces the limits.
//
// # Differences from the kubelet
//
//   - A kubelet refuses to start with a checkpoint of another policy or machine;
//     Config.RefuseForeign restores that.
//   - There is no policy BestEffort, which is for Windows.
//
// # Testing
//
// Rules by name, a golden file of decisions on twelve machines, invariants on random
// pods; every bit of a checkpoint is flipped once, and the decoder is fuzzed.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package memory
