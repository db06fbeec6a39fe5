package cm_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm", Max: 330, Module: []string{"cm/cgroups", "cm/topology", "internal/hugepages", "internal/podspec", "internal/qos", "internal/restart", "internal/runonce", "runtime"}}.Check(t)
}
