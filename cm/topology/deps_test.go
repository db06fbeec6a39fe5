package topology_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/topology", Max: 330, Module: []string{"internal/podspec", "runtime"}}.Check(t)
}
