package runtime_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime", Max: 300, Module: []string{}}.Check(t)
}
