// Package topology knows what the CPUs and memory of a machine look like, and keeps
// what a container gets close together. It can be used without the rest, by
// schedulers and simulators too: its decisions are functions.
//
// # What it decides
//
// [Read] reads the machine from sysfs. Those who give something out, CPUs, memory,
// devices, say as [Hints] from which NUMA nodes they could; [Merge] finds the nodes
// that suit them all, and whether the [Policy] admits the pod with these. A
// [Manager] asks the providers, container by container or for the pod as a whole,
// and has them allocate, all or nothing.
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
// A [Machine] can be read from many goroutines; the functions are pure. A Manager
// serves one pod at a time; those that ask for nothing don't wait.
//
// # Guarantees and limits
//
//   - The same hints give the same answer, in whatever order they come.
//   - A pod that is refused keeps nothing of what was given on the way, unless it had
//     something before.
//   - Every set of NUMA nodes is looked at: up to eight nodes, unless Options.MaxNodes
//     says otherwise; never more than 64.
//   - A list of CPUs that asks for more than 65536 of them is an error.
//
// # Differences from the kubelet
//
//   - Merging takes time by the number of sets of nodes, not by the product of the
//     numbers of hints.
//   - Providers may say that what a pod asks for is not there yet (F-51).
//   - A pod that fails half-way gives back at once what it got.
//   - NUMA nodes without CPUs are part of the hints for CPUs, so that they can be
//     merged with those for memory.
//   - A core has as many threads as the largest has, and caches that nobody tells of
//     are taken to be one per socket.
//
// # Testing
//
// Twelve machines of package topologytest are read and compared with a golden file;
// merging is compared with going through all combinations.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package topology
