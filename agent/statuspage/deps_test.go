package statuspage_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "agent/statuspage", Max: 450,
		Module: []string{
			"agent", "agent/statuspage/internal/page", "allocation", "cm/cgroups", "cm/stats", "eviction", "imagegc", "internal/checkpoint",
			"internal/pause", "internal/podhttp", "internal/podspec", "internal/quiet",
			"internal/runonce", "internal/singleflight", "internal/terminal", "internal/staticuid", "internal/untrusted", "internal/yamljson", "pleg", "podenv", "podsource",
			"podsource/manifest", "podworker", "prober", "runtime", "runtime/cri", "runtime/cri/credentials", "runtime/cri/images", "runtime/cri/plan",
			"runtime/cri/podconfig", "runtime/cri/userns", "status", "volume",
		},
	}.Check(t)
}
