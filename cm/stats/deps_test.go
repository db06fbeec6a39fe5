package stats_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/stats", Max: 300, Module: []string{"cm/cgroups", "internal/runonce", "internal/untrusted", "runtime"}}.Check(t)
}
