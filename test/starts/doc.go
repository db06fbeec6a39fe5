//go:build unix

// Package starts measures how long pods take to start under load, step by step, on the complete node
// (examples/kubelet), on a real kubelet, and with a CRI client that makes only the calls of a start:
//
//	go run ./test starts
//	go run ./test starts --fill 250 --in-flight 1,50,200
//
// The runtime is runtime/cri/fakecri at a socket. Its calls take times of a real runtime, and do not delay each
// other: what is left is the time of the node. With --containerd it is a containerd
// behind a proxy. docs/benchmarks.md has the table that it prints.
package starts
