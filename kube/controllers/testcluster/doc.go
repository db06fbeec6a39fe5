// Testcluster is a Kubernetes cluster for tests, in one process and in memory.
//
//	export KUBEBUILDER_ASSETS=$(testcluster assets)   # for tests with an envtest
//	testcluster up --nodes=3 --controllers            # for kubectl, and any language
//
// docs/operators.md in the repository describes what works, and what does not. The module has
// replacements, so that "go install" does not accept it: build it in a checkout, in the
// directory kube/controllers, with "GOWORK=off go build ./testcluster".
//
// # Stability
//
// Experimental: flags may be renamed.
package main
