// Package userns gives pods the user and group IDs that their own user namespace
// is mapped to.
//
// # What it decides
//
// An [Allocator] divides a range of IDs of the machine into blocks of equal size,
// and gives each pod that asks one of its own, for as long as the pod exists. So
// root in a pod is nobody in particular outside of it, and a process that leaves
// one pod has no rights in another.
//
// # Usage
//
//	a, err := userns.New(userns.Config{RootDir: "/var/lib/kubelet"})
//	…
//	err = a.Load() // those of pods from before a restart
//	…
//	m, err := a.Allocate(pod.UID) // the same each time
//	…
//	err = a.Release(pod.UID) // when nothing of the pod runs any more
//
// # Concurrency
//
// All methods may be called from many goroutines.
//
// # Guarantees and limits
//
//   - No two pods have a block in common, across restarts too: a block is written
//     to the pod's directory, in the kubelet's format and synced to the disk,
//     before it is given out, and Load reads all of them (se-19).
//   - A record that cannot be read, or that contradicts another, is an error of
//     Load: whose IDs those are is not known, and giving them out again would not
//     be safe.
//   - User IDs and group IDs of a pod are the same numbers.
//
// # Differences from the kubelet
//
//   - The range is given, not asked of getsubids: [ParseSubIDs] reads what that
//     prints (se-18).
//   - Release takes away the record too; the pod's directory is another's.
//
// # Testing
//
// Tables for the rules, and records in a directory of the test.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package userns
