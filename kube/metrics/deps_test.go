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
	"internal/runonce", "internal/staticuid", "internal/untrusted",
	"internal/yamljson", "kube/metrics/internal/family",
	"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "shutdown", "status", "volume", "volume/certificate",
}

// No gRPC and no client-go: these are for packages remote and cluster.
func TestImports(t *testing.T) {
	// Two for the counts of volume/certificate: the package and the types of certificates.k8s.io.
	deptest.Closure{Package: "kube/metrics", Max: 377, Module: base}.Check(t)
	// The clients of the CRI, and of CSI and DRA drivers with their API types; the pods API.
	deptest.Closure{Package: "kube/metrics/remote", Max: 492, Module: slices.Concat(base, []string{
		"agent/podsapi", "cm/device", "cm/dra", "cm/dra/registry", "cm/podresources", "internal/quiet", "internal/singleflight", "internal/unixgrpc", "kube/metrics", "runtime/cri", "runtime/cri/credentials", "runtime/cri/images",
		"runtime/cri/plan", "runtime/cri/podconfig", "runtime/cri/userns", "volume/csi", "volume/token",
	})}.Check(t)
}
