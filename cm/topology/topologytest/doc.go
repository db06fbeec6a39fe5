// Package topologytest has machines for tests: the sysfs files of machines of
// many topologies, generated from short descriptions.
//
// # Behavior
//
// [FS] returns the files that topology.Read reads, for a description of a machine.
// [Names] lists the included machines, and [Machine] returns one.
//
// A description has a line per fact; # begins a comment:
//
//	cpus 0-15            the CPUs
//	offline 12,14        CPUs that are offline
//	smt +8               CPU n and n+8 are threads of a core ("smt pairs": 2n and 2n+1)
//	smt +8 0-7           the same, for cores whose first thread is listed
//	socket 0 0-15        a physical package
//	node 0 0-7 32Gi 2Mi=128 1Gi=2   a NUMA node: CPUs ("-": none), memory, huge pages
//	distance 0 10 21     of a node to each node
//	l3 0-3,8-11          CPUs that share a last level cache
//
// Without a node line the kernel has no NUMA support, and "memory 8Gi" sets the
// memory of the machine.
//
// # Usage
//
//	m := topologytest.Machine(t, "epyc-2s-nps4")
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Guarantees and limits
//
// Included machines do not change. An error names the line.
//
// # Differences from the kubelet
//
// The kubelet has no equivalent: its tests build topologies in memory.
//
// # Testing
//
// The golden files of packages topology, cpu and memory are generated from these.
//
// # Stability
//
// Experimental: the API will change.
package topologytest
