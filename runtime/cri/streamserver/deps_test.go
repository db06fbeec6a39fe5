package streamserver_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/streamserver", Max: 300, Module: []string{"internal/gate", "runtime"}}.Check(t)
}
