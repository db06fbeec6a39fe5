package metrics_test

import (
	"slices"
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// base are the packages that package metrics reaches: those whose hooks it implements,
// and their dependencies.
var base = []string{
	"allocation", "cm", "cm/cgroups", "cm/cpu", "cm/memory", "cm/oom", "cm/state", "cm/topology", "eviction", "imagegc",
	"internal/checkpoint", "internal/pause", "internal/podhttp", "internal/podspec",
	"internal/runonce", "internal/untrusted",
	"internal/yamljson", "kube/metrics/internal/family",
	"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "shutdown", "status", "volume",
}

// No gRPC and no client-go: these are for packages remote and cluster.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "kube/metrics", Max: 375, Module: base}.Check(t)
	// Four more than runtime/cri needed before it used x/time/rate and k8s.io/kubelet's credential provider types.
	deptest.Closure{Package: "kube/metrics/remote", Max: 478, Module: slices.Concat(base, []string{
		"cm/device", "cm/podresources", "internal/quiet", "internal/singleflight", "kube/metrics", "runtime/cri", "runtime/cri/credentials", "runtime/cri/images",
		"runtime/cri/plan", "runtime/cri/podconfig", "runtime/cri/userns", "volume/csi", "volume/token",
	})}.Check(t)
}
