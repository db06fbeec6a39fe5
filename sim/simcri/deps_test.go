package simcri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is both runtime/cri, which is at the limit of 400, and an agent.
func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "sim/simcri", Max: 460,
		Module: []string{
			"admission", "agent", "allocation", "cm/cgroups", "cm/dra", "cm/state", "imagegc", "internal/checkpoint", "internal/pause", "internal/podfields",
			"internal/podhttp", "internal/podspec", "internal/quiet", "internal/runonce", "internal/singleflight", "internal/staticuid", "internal/untrusted",
			"internal/yamljson", "pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "runtime/cri",
			"runtime/cri/credentials", "runtime/cri/fakecri", "runtime/cri/images", "runtime/cri/plan", "runtime/cri/podconfig", "runtime/cri/userns",
			"runtime/runtimetest", "sim", "sim/timeline", "status", "volume",
		},
		Allow: []string{"testing"}, // of the suite beside runtimetest.Runtime
	}.Check(t)
}
