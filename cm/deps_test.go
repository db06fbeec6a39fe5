package cm_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm", Max: 330, Module: []string{"cm/cgroups", "cm/topology", "internal/podspec", "internal/runonce", "runtime"}}.Check(t)
}
