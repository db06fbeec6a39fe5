// Package simcri simulates the complete runtime side: the schedules and invariants of
// package sim with the engine of runtime/cri over a CRI runtime in memory,
// runtime/cri/fakecri.
//
// # Behavior
//
// The package is a sim.Machine and decides nothing. Each agent has its own engine. Each call of the CRI is a
// call to the outside, with its latency and faults, and the agent may be killed before or
// after it. The next agent gets a copy of the state directory at the instant of the kill.
//
// # Usage
//
//	sim.Run(ctx, sim.Config{Seed: 7, Machine: simcri.MachineIn(t.TempDir())})
//
// Fault steps name methods of the CRI (StartContainer, ListContainers), or
// "runtime" for all of them.
//
// # Concurrency
//
// A Machine and its directory must be used for one run only. Runs are independent of
// each other.
//
// # Guarantees and limits
//
// An engine waits in real time for the disk with each checkpoint: directories in memory
// (/dev/shm) make runs several times faster.
//
// Image pulls take no time.
//
// # Differences from the kubelet
//
// None.
//
// # Testing
//
// As package sim, with 20 seeds, and 20 with checkpoints of pods; KUBEPARTS_SIM_SEEDS is another number.
//
// # Stability
//
// Experimental: the API may change in any release.
package simcri
