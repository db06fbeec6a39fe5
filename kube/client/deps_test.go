package client_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// What a client of the API server weighs is client-go: its typed clients know
// every kind there is. That is why it lives in a module of its own, and why no
// core package knows of it.
func TestWhatTheClientWeighs(t *testing.T) {
	deptest.Closure{
		Package: "kube/client",
		Max:     600,
		Module:   []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "runtime", "status"},
		Allow:   []string{"k8s.io/client-go"},
	}.Check(t)
}
