// Package e2enode runs Kubernetes' own suite of tests of the kubelet, test/e2e_node, against a real
// kubelet and against the complete node, examples/kubelet, one after the other on the same
// machine:
//
//	bash .ci/run e2e-node
//	go run ./test e2enode --focus 'MirrorPod'
//
// Results accumulate in a file in the cache of .ci/run; docs/e2e-node.md is the report of all of them. A test that
// passes with the kubelet and not with the agent needs an entry in differences.txt.
package e2enode
