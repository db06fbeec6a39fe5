package register_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/csi/register", Max: 400, Module: []string{"internal/runonce"}}.Check(t)
}
