package eviction_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "eviction", Max: 300, Module: []string{"internal/pause", "internal/podspec", "internal/runonce", "runtime"}}.Check(t)
}
