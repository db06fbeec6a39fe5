package managers_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/managers", Max: 400, Module: []string{"cm/cpu", "cm/device", "cm/memory", "cm/state", "cm/topology", "internal/checkpoint", "internal/podspec", "internal/quiet", "internal/runonce", "internal/unixgrpc", "runtime"}}.Check(t)
}
