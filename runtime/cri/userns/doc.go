// Package userns allocates ranges of host user and group IDs to pods with user
// namespaces.
//
// An [Allocator] divides a range of host IDs into blocks of equal size and assigns
// one block to each pod for its lifetime. Root in a pod has no privileges on the
// host, and a process that escapes from one pod has no access to the files of
// another.
//
// # Usage
//
//	a, err := userns.New(userns.Config{RootDir: "/var/lib/kubelet"})
//	…
//	err = a.Load() // the pods from before a restart
//	…
//	m, err := a.Allocate(pod.UID) // the same mappings each time
//	…
//	err = a.Release(pod.UID) // after the pod has terminated
//
// # Concurrency
//
// All methods are safe for concurrent use.
//
// # Guarantees and limits
//
//   - No two pods have a common block, also across restarts: the mappings are
//     written to the pod's directory, in the kubelet's format, and synced to disk
//     before Allocate returns, and Load reads all of them (rule se-19).
//   - A record that cannot be read or conflicts with another is an error of Load,
//     because its IDs could be allocated twice.
//   - A record that was removed while the pod's sandbox ran frees nothing: Adopt keeps
//     the IDs that the runtime reports, and writes the record again.
//   - The user IDs and group IDs of a pod are the same numbers.
//
// # Differences from the kubelet
//
//   - The range is configured; the kubelet runs getsubids. [ParseSubIDs] parses its
//     output.
//   - The last block of the 32-bit range is not allocated. The kubelet allocates it, and
//     the kernel refuses the pod's user namespace.
//   - Release removes the record; in the kubelet it is removed with the pod's
//     directory.
//   - The kubelet allocates the IDs of a sandbox whose record is missing to other pods.
//
// # Testing
//
// Tables for the rules, with records in a temporary directory.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package userns
