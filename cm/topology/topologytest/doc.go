// Package topologytest has machines to test with: what sysfs says on machines of
// many shapes, from a few lines of text.
//
// # What it decides
//
// [FS] expands a description of a machine to the files that topology.Read reads.
// [Names] lists the machines that come along, and [Machine] reads one.
//
// A description has a line per fact; # begins a comment:
//
//	cpus 0-15            the CPUs that are there
//	offline 12,14        those of them that are off
//	smt +8               CPU n and n+8 are threads of a core ("smt pairs": 2n and 2n+1)
//	smt +8 0-7           the same, for cores whose first thread is among these
//	socket 0 0-15        a physical package
//	node 0 0-7 32Gi 2Mi=128 1Gi=2   a NUMA node: CPUs ("-": none), memory, huge pages
//	distance 0 10 21     of a node to each node
//	l3 0-3,8-11          CPUs that share a last level cache
//
// Without a node line the kernel has no NUMA support, and "memory 8Gi" tells the
// memory of the machine.
//
// # Usage
//
//	m := topologytest.Machine(t, "epyc-2s-nps4")
//
// # Concurrency
//
// All functions may be called from any goroutine.
//
// # Guarantees and limits
//
// The machines that come along keep their shape. An error names the line.
//
// # Differences from the kubelet
//
// It has nothing of the kind: its tests make topologies in memory.
//
// # Testing
//
// The golden files of packages topology, cpu and memory are made from these.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package topologytest
