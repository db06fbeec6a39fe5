// Package atomic replaces a set of files in a directory atomically, as the kubelet does for volumes of
// ConfigMaps and Secrets: readers see the old set or the new one, even if the writer is killed.
//
// # Behavior
//
// The layout of the directory. The files are in a subdirectory "..2006_01_02_15_04_05.RANDOM". The
// symbolic link "..data" points to it, and each visible name is a symbolic link to "..data/NAME".
// [Write] creates a new subdirectory and replaces "..data" with a rename. [Current] returns the
// subdirectory in use.
//
// # Usage
//
//	changed, err := atomic.Write(dir, atomic.Payload{
//		"tls.crt":     {Data: cert, Mode: 0o644},
//		"private/key": {Data: key, Mode: 0o600, UID: &uid},
//	}, atomic.Options{})
//
// # Concurrency
//
// Calls for the same directory must not be concurrent. Readers need no synchronization; a reader that
// needs several files of the same set opens "..data" once and reads them relative to it.
//
// # Guarantees and limits
//
//   - A payload with an invalid path (see [Check]) or with conflicting paths is rejected before
//     anything is written.
//   - Nothing is written, changed or removed outside the directory, whatever symbolic links it
//     contains.
//   - After a killed Write the old or the new set is in use. The next Write removes its other files.
//   - If the files are equal nothing is written; missing visible links are created.
//   - Nothing is synced to disk. After a power failure, Write compares the contents and writes the
//     files again if they were lost.
//   - On Windows the process must be allowed to create symbolic links, and owners cannot be set.
//
// # Differences from the kubelet
//
//   - Conflicting paths ("a" and "a/b", "a" and "./a") and paths with a zero byte are rejected before
//     anything is written; the kubelet fails later, or one file replaces the other.
//   - Files of a killed writer are removed.
//   - Mode bits that Options.SetPerms adds are ignored in the comparison, so that a volume with an
//     fsGroup is not rewritten at each sync.
//
// # Testing
//
// A child process kills itself before each of its system calls in turn while another process reads;
// paths are fuzzed.
//
// # Stability
//
// Settled: an incompatible change is announced one minor version in advance.
package atomic
