package host_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/cgroups/host", Max: 200, Module: []string{"cm/cgroups"}}.Check(t)
}
