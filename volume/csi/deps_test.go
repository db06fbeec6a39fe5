package csi_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/csi", Max: 403, Module: []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "internal/untrusted", "runtime", "volume", "volume/token"}}.Check(t)
}
