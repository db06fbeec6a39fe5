package trace_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "sim/cluster/trace",
		Max:     310,
		Module: []string{
			"cm/cgroups", "eviction", "imagegc", "internal/checkpoint", "internal/pause", "internal/podspec", "internal/runonce",
			"runtime", "runtime/cri/plan", "sim/cluster", "sim/timeline",
		},
	}.Check(t)
}
