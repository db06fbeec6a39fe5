//go:build unix

// Package footprint measures the complete node, examples/kubelet, and a real kubelet, one after the other,
// on a real containerd:
//
//	hack/footprint.sh --compare
//	hack/footprint.sh --compare --cluster --repeat 3
//
// docs/benchmarks.md has the table that it prints.
package footprint
