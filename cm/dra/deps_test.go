package dra_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/dra", Max: 300, Module: []string{"cm/state", "internal/checkpoint", "internal/podspec", "internal/runonce", "runtime"}}.Check(t)
}
