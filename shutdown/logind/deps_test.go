package logind_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "shutdown/logind", Max: 300, Module: []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "runtime", "shutdown"}}.Check(t)
}
