// Package cpu gives whole CPUs to the containers that ask for whole CPUs.
//
// # What it decides
//
// [Take] chooses CPUs out of those that are free, [Take] with regard to NUMA nodes,
// and [Hints] tells from which nodes they could come: pure functions of machine,
// options and request (F-58). [Wants] says who gets CPUs of its own. A [Manager]
// keeps who has which, and tells containers that run when that has changed. Without
// a policy, "none", it does nothing.
//
// # Usage
//
//	manager, err := cpu.Open(cpu.Config{
//		Machine: machine, Policy: cpu.Static, ReservedMilli: 500,
//		Store: state.File("/var/lib/kubelet/" + cpu.StateFile), Running: running,
//		Apply: &cpu.Apply{Containers: list, Update: update},
//	})
//	// hand it to topology.NewManager as a provider, and run it:
//	err = manager.Run(ctx)
//	// when a container is made:
//	cpus, exclusive := manager.CPUs(pod.UID, "web")
//
// # Concurrency
//
// All methods but Run and Reconcile may be called from any goroutine. The store is
// called with a lock held, one call at a time; hooks and Apply are not.
//
// # Guarantees and limits
//
//   - No CPU is given to two pods, and none that is reserved to any; what a pod had
//     comes back when it is freed. The same questions have the same answers.
//   - What could not be saved is not given.
//   - A state of another policy or machine, or a broken one, is mended from itself and
//     from what runs (F-53), and one copy of it is kept. Only where a container runs
//     on CPUs that it can't have is there an error, which names it.
//   - A change of the shared pool reaches containers at once (F-59), what fails is
//     tried again every 10 seconds.
//
// # Differences from the kubelet
//
//   - Config.RefuseForeign brings its refusals to start back (nq-18).
//   - distribute-cpus-across-cores takes one thread of each core also where threads
//     are numbered next to each other, and prefers cores of which nothing is in use.
//   - What is left to take in a cache comes from cores in use first.
//   - full-pcpus-only counts only whole free cores, also in machines whose cores
//     differ or of which threads are off.
//   - With strict-cpu-reservation and no CPU left in the pool, containers share the
//     reserved ones; the kubelet lets them run everywhere.
//   - Containers that were pinned run on any CPU when the policy is changed to none.
//
// # Testing
//
// Rules by name, a golden file of decisions on twelve machines, laws on random pods
// under every policy; every bit of a state is flipped once, and the decoder fuzzed.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cpu
