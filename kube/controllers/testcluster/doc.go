// Testcluster is a Kubernetes cluster for tests, in one process and in memory.
//
//	export KUBEBUILDER_ASSETS=$(testcluster assets)   # for tests with an envtest
//	testcluster up --nodes=3 --controllers            # for kubectl, and any language
//
// docs/operators.md in the repository describes what works, and what does not.
package main
