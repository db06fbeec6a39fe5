// Package memory gives memory of certain NUMA nodes to Guaranteed pods.
//
// # What it decides
//
// [Hints] and [Choose] say over which nodes the memory of a container lies: pure
// functions of what the nodes have and the request (F-58). replay works out what
// they have from who has what. A [Manager] keeps that, in the file of the kubelet.
// Without a policy, "None", it does nothing.
//
// # Usage
//
//	manager, err := memory.Open(memory.Config{
//		Machine: machine, Policy: memory.Static,
//		Reserved: map[int]memory.Request{0: {v1.ResourceMemory: 1 << 30}},
//		Total:    memory.Request{v1.ResourceMemory: 1 << 30},
//		Store:    state.File("/var/lib/kubelet/" + memory.StateFile),
//	})
//	// hand it to topology.NewManager as a provider; when a container is made:
//	nodes := manager.Nodes(pod.UID, "web") // cpuset.mems
//
// # Concurrency
//
// All methods may be called from any goroutine. The store is called with a lock
// held, one call at a time.
//
// # Guarantees and limits
//
//   - No more is given than there is; nodes that hold blocks over several nodes hold
//     no others (mem-3).
//   - What could not be saved is not given.
//   - A state of another policy or machine, or a broken one, is mended (F-53), and one
//     copy of it is kept. Only where a container runs with memory that is not there
//     any more is there an error, which names it. Of a broken state nothing is known
//     of who had what: the runtime does not tell.
//   - It counts what is asked for. Keeping containers to it is the kernel's part.
//
// # Differences from the kubelet
//
//   - Config.RefuseForeign brings its refusals to start back (nq-18).
//   - The policy BestEffort, which is Windows', is not there.
//
// # Testing
//
// Rules by name, a golden file of decisions on twelve machines, laws on random pods;
// every bit of a state is flipped once, and the decoder fuzzed.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package memory
