// Package simcri simulates the whole runtime side of the house: package sim's
// schedules and laws over the engine of runtime/cri, and that over a CRI runtime
// in memory, runtime/cri/fakecri.
//
// # What it decides
//
// Nothing: it is a sim.Machine. Each agent has an engine of its own; each call
// that this makes of the CRI is one of the outside, with its moment, its faults,
// and the agent's death before or after it. The next agent has what the one
// before it had in its state directory at that instant.
//
// # Usage
//
//	sim.Run(ctx, sim.Config{Seed: 7, Machine: simcri.In(t.TempDir())})
//
// Fault steps name methods of the CRI (StartContainer, ListContainers), or
// "runtime" for all of them.
//
// # Concurrency
//
// A Machine is one run's, and so is its directory.
//
// # Guarantees and limits
//
// An engine waits for the disk with each record that it writes, in real time:
// directories in memory (/dev/shm) make runs several times faster.
//
// Images are there at once.
//
// # Differences from the kubelet
//
// None.
//
// # Testing
//
// As package sim: 20 seeds, or as many as KUBEPARTS_SIM_SEEDS says.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package simcri
