package sim_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "sim", Max: 335, // an agent with all of its subsystems, and the runtime in memory; no gRPC
		Module: []string{
			"admission", "agent", "allocation", "cm/cgroups", "cm/dra", "cm/state", "imagegc", "internal/checkpoint", "internal/pause", "internal/podfields", "internal/podhttp", "internal/podspec", "internal/runonce", "internal/staticuid", "internal/untrusted", "internal/yamljson",
			"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "runtime/cri/plan", "runtime/runtimetest", "sim/timeline", "status", "volume",
		},
		Allow: []string{"testing"}, // of Check, and of the suite beside runtimetest.Runtime
	}.Check(t)
}
