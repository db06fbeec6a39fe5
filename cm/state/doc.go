// Package state stores the checkpoints of the CPU, memory and device managers, so that
// allocations survive a restart of the agent.
//
// # Behavior
//
// A [Store] contains one checkpoint, as bytes. [File] stores it in a file that is
// replaced atomically; [Memory] stores it for the lifetime of the process; programs may
// implement others. [Restore] and [Replace] handle checkpoints that cannot be used.
//
// # Usage
//
//	store := state.File("/var/lib/kubelet/cpu_manager_state")
//	manager, err := cpu.Open(cpu.Config{Store: store, …})
//
// # Concurrency
//
// The manager that writes a checkpoint is the only user of its store and does not call it
// concurrently.
//
// # Guarantees and limits
//
//   - After a crash a file contains the previous checkpoint or the new one, completely.
//   - Keep preserves one copy, with the suffix ".bak", of a checkpoint that is about to
//     be replaced because it could not be used.
//
// # Differences from the kubelet
//
// The bytes are in the kubelet's formats. The kubelet does not preserve a checkpoint that
// it cannot read.
//
// # Testing
//
// The tests of the managers flip every bit of their checkpoints.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package state
