package agent_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "agent", Max: 320,
		Module: []string{
			"allocation", "internal/checkpoint", "internal/podhttp", "internal/podspec",
			"internal/runonce", "internal/staticuid", "internal/untrusted", "internal/yamljson", "pleg", "podenv", "podsource", "podsource/manifest", "podworker", "prober",
			"runtime", "status",
		},
	}.Check(t)
}
