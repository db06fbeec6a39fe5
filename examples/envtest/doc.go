// Package envtest shows how a controller is tested on nodes where its pods live:
// team.go is a small controller, and its tests run it twice, with an API server in
// memory and in virtual time, which takes milliseconds, and with a real one, as an
// envtest does.
//
// The three lines that a suite of one's own needs are in the documentation of
// package kube/fakenode; newWorld and newRealWorld in the tests have them.
package envtest
