package tracing_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "agent/tracing", Max: 300, Module: []string{"internal/runonce", "podworker", "runtime"}}.Check(t)
}
