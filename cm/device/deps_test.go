package device_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/device", Max: 400, Module: []string{"cm/state", "cm/topology", "internal/checkpoint", "internal/podspec", "internal/runonce", "internal/unixgrpc", "runtime"}}.Check(t)
}
