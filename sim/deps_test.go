package sim_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "sim", Max: 330, // an agent with all of its subsystems, and the runtime in memory
		Module: []string{
			"admission", "agent", "allocation", "cm/cgroups", "imagegc", "internal/checkpoint", "internal/pause", "internal/podfields", "internal/podhttp", "internal/podspec", "internal/runonce", "internal/untrusted", "internal/yamljson",
			"pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober", "runtime", "runtime/cri/plan", "runtime/runtimetest", "sim/timeline", "status", "volume",
		},
		Allow: []string{"testing"}, // of Check, and of the suite beside runtimetest.Runtime
	}.Check(t)
}
