package cluster_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "sim/cluster",
		Max:     300,
		Module: []string{
			"cm/cgroups", "eviction", "imagegc", "internal/checkpoint", "internal/pause", "internal/podspec", "internal/runonce",
			"runtime", "runtime/cri/plan", "sim/timeline",
		},
	}.Check(t)
}
