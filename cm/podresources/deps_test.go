package podresources_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/podresources", Max: 400, Module: []string{"cm/device", "cm/dra", "cm/memory", "cm/state", "cm/topology", "internal/checkpoint", "internal/podspec", "internal/runonce", "internal/unixgrpc", "runtime"}}.Check(t)
}
