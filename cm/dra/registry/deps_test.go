package registry_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/dra/registry", Max: 400, Module: []string{"cm/dra", "cm/state", "internal/checkpoint", "internal/podspec", "internal/runonce", "runtime"}}.Check(t)
}
