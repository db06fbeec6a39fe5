package cluster_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It observes client-go, and the server of a node.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "kube/metrics/cluster", Max: 700, Module: []string{
		"allocation", "cm", "cm/cgroups", "cm/cpu", "cm/memory", "cm/oom", "cm/state", "cm/topology", "eviction", "imagegc", "internal/checkpoint",
		"internal/gate", "internal/pause", "internal/podhttp", "internal/podspec",
		"internal/runonce", "internal/staticuid", "internal/untrusted", "internal/yamljson", "kube/auth", "kube/client", "kube/internal/pause", "kube/internal/podlog",
		"kube/metrics", "kube/metrics/internal/family", "kube/node", "kube/server", "pleg", "podenv", "podsource", "podsource/manifest", "podworker",
		"prober", "runtime", "runtime/cri/logread", "runtime/cri/streamserver", "shutdown", "status", "volume", "volume/certificate",
	}, Allow: []string{"k8s.io/client-go"}}.Check(t)
}
