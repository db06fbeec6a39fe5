package csi_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/csi", Max: 400, House: []string{"internal/untrusted", "internal/checkpoint", "internal/runonce", "runtime", "volume", "volume/token"}}.Check(t)
}
