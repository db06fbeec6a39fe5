// Package hollow measures simulated nodes: hundreds of them with thousands of pods run in one process
// against a real API server (package kube/fakenode), and the program reports their memory,
// processor time and calls. examples/hollow only runs the nodes.
//
//	go run ./test hollow --lab                       # with a control plane of its own
//	go run ./test hollow --kubeconfig ~/.kube/config # as nodes of a cluster
//
// docs/benchmarks.md has the results.
package hollow
