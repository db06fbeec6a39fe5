//go:build unix

// Package compare runs the same pods on a real kubelet and on the complete node of this repository,
// examples/kubelet, one after the other, and compares everything that others can observe of
// them: the requests to the container runtime, pod statuses, events, cgroups, files and logs.
//
//	bash .ci/run compare
//	go run ./test compare --focus probes --report docs/differences.md
//
// Each difference must have a reason in reasons.txt; docs/differences.md lists them, and the defects of
// the kubelet in defects.txt.
package compare
