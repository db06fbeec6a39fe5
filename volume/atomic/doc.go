// Package atomic writes a set of files into a directory in one step, as volumes
// of ConfigMaps, Secrets and the like are written: whoever reads sees the old set
// or the new one, never a part of either, also when the writer is killed half
// way.
//
// # What it decides
//
// The files lie in a directory of their own, called "..2006_01_02_15_04_05.RANDOM".
// A link "..data" leads to it, and each visible name is a link to "..data/NAME".
// [Write] makes a new such directory beside the old one, and puts a new "..data" in
// place with a rename (vol-40). [Current] says which directory is read at present.
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
// Calls for different directories may run at once; calls for one directory may
// not. Readers need no care at all; one that wants several files of the same
// set opens "..data" once, and reads them from there.
//
// # Guarantees and limits
//
//   - A payload with a path that can't be had (see [Check]), or with two paths
//     that exclude each other, is refused before anything is written (vol-39).
//   - Nothing is written, changed or removed outside the directory, whatever
//     links somebody has put into it.
//   - A writer that is killed leaves the old set or the new one. What it leaves
//     besides is removed by the next Write, whoever calls it.
//   - If nothing differs nothing is written (vol-41); a visible link that is
//     missing is made again.
//   - It is no promise for a power cut: nothing is synced. After one, Write compares
//     contents and writes again what was lost.
//   - Links are needed: on Windows the process must be allowed to make them.
//     Owners can't be set there.
//
// # Differences from the kubelet
//
//   - Paths that exclude each other ("a" and "a/b", "a" and "./a"), and paths with a
//     zero byte, are refused, with nothing written; the kubelet fails half way, or one
//     file takes the other's place.
//   - What a killed writer left is removed.
//   - Bits that Options.SetPerms adds to modes are no difference, so that a volume
//     with an fsGroup is not written anew each time.
//
// # Testing
//
// A child process kills itself before each of its calls to the operating system in
// turn (F-46), with a reader beside it; paths are fuzzed.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package atomic
