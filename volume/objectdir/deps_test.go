package objectdir_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/objectdir", Max: 300, Module: []string{"internal/podspec", "internal/runonce", "internal/untrusted", "internal/yamljson", "runtime", "volume"}}.Check(t)
}
