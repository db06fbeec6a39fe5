package procmem_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "agent/procmem", Max: 90, Module: []string{"internal/pause"}}.Check(t)
}
