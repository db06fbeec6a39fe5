package fakenode_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is for tests of packages that depend on client-go already.
func TestDependenciesOfFakeNodes(t *testing.T) {
	deptest.Closure{
		Package: "kube/fakenode",
		Max:     640, // no gRPC
		Module: []string{
			"admission", "agent", "allocation", "cm/cgroups", "cm/dra", "cm/state", "internal/checkpoint", "internal/pause", "internal/podfields", "internal/podhttp", "internal/podspec", "internal/runonce", "internal/staticuid", "internal/untrusted", "internal/yamljson", "kube/client", "kube/internal/pause", "kube/node",
			"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "runtime/cri/plan", "runtime/runtimetest", "scheduler", "status",
		},
		Allow: []string{"k8s.io/client-go", "testing"},
	}.Check(t)
}
