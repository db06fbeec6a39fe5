package fakenode_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is for tests of what has client-go anyway.
func TestWhatFakeNodesWeigh(t *testing.T) {
	deptest.Closure{
		Package: "kube/fakenode",
		Max:     630,
		Module: []string{
			"admission", "agent", "allocation", "cm/cgroups", "cm/state", "internal/checkpoint", "internal/pause", "internal/podfields", "internal/podhttp", "internal/podspec", "internal/runonce", "internal/untrusted", "internal/yamljson", "kube/client", "kube/internal/pause", "kube/node",
			"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "runtime/cri/plan", "runtime/runtimetest", "status",
		},
		Allow: []string{"k8s.io/client-go", "testing"},
	}.Check(t)
}
