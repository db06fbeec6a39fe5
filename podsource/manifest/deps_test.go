package manifest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "podsource/manifest", Max: 300, Module: []string{"internal/podspec", "internal/staticuid", "internal/yamljson", "runtime"}}.Check(t)
}
