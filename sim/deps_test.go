package sim_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "sim", Max: 310, // it is a whole agent, which five packages make
		House: []string{
			"internal/checkpoint", "internal/pause", "internal/qos", "internal/restart", "internal/runonce", "internal/staticpod", "internal/yamljson",
			"pleg", "podsource", "podworker", "runtime", "runtime/runtimetest", "sim/timeline", "status",
		},
		Allow: []string{"testing"}, // of Check, and of the suite beside runtimetest.Runtime
	}.Check(t)
}
