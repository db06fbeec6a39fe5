// Package envtest shows how a controller is tested with pods that run: team.go is a small
// controller, and its tests run it with an API server in memory and in virtual time, which
// takes milliseconds, and, if ENVTEST_KUBECONFIG names one, with a real API server.
//
// A suite needs the call of fakenode.Start in newWorld; package kube/fakenode describes it
// for envtest and Ginkgo.
package envtest
