//go:build unix

// Package modern runs the other programs of this module in an emulated machine like those that people have: with cgroup
// v2, with the cgroup driver systemd and systemd as the first process, or with the driver cgroupfs and without systemd,
// with NUMA nodes, swap and huge pages:
//
//	go run ./test modern
//	go run ./test modern --drivers systemd --swap 1024 compare --focus resources --all
//
// docs/integration.md tells what was run there.
package modern
