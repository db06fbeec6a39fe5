// Package state keeps what the managers of CPUs, memory and devices have given
// out, so that it outlives the agent.
//
// # What it decides
//
// A [Store] holds one record, as bytes. [File] keeps it in a file that is replaced
// in one step, [Memory] keeps it for as long as the process lives; a program can
// bring another. [Checksum] is the sum that the kubelet's files carry.
//
// # Usage
//
//	store := state.File("/var/lib/kubelet/cpu_manager_state")
//	manager, err := cpu.New(cpu.Config{Store: store, …})
//
// # Concurrency
//
// The one who writes a record is the only one who uses its store.
//
// # Guarantees and limits
//
//   - After a crash a file holds the record before or the one after, in full.
//   - Keep leaves one copy, ".bak", of a record that is about to be replaced
//     because it could not be used (F-53).
//
// # Differences from the kubelet
//
// The bytes are the kubelet's own formats. It keeps no copy of what it can't read.
//
// # Testing
//
// The managers' tests flip every byte of their records.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package state
