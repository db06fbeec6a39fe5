package remote_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/remote", Max: 400, Module: []string{"internal/quiet"}}.Check(t)
}
