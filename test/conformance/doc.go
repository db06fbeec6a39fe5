// Package conformance runs Kubernetes' node conformance tests, or its tests of dynamic resource
// allocation in clusters, against the complete node, examples/kubelet, as the only node of a
// real cluster on a real containerd:
//
//	bash .ci/run conformance
//	go run ./test conformance --focus 'Probing container'
//	bash .ci/run dra
//
// docs/node-conformance.md and docs/dra.md are reports of such runs.
package conformance
