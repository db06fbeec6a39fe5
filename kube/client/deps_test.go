package client_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// Nearly all dependencies of an API server client are client-go's: its typed clients
// contain every kind. That is why the client is a module of its own, and why no core
// package imports it.
func TestDependenciesOfTheClient(t *testing.T) {
	deptest.Closure{
		Package: "kube/client",
		Max:     600,
		Module:  []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "runtime", "status"},
		Allow:   []string{"k8s.io/client-go"},
	}.Check(t)
}
