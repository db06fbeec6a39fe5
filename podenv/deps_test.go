package podenv_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "podenv", Max: 300, Module: []string{"internal/podspec", "internal/untrusted", "runtime"}}.Check(t)
}
