package topologytest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/topology/topologytest", Max: 330, Module: []string{"cm/topology", "internal/podspec", "runtime"}, Allow: []string{"testing"}}.Check(t)
}
