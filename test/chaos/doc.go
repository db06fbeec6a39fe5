// Package chaos runs the complete node, examples/kubelet, in a real cluster and on a real containerd,
// injects real faults, and checks the invariants of the simulation:
//
//	go run ./test chaos
//	go run ./test chaos --once --pods 10
//
// docs/reliability.md is the report of such a run.
package chaos
