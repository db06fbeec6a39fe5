package logread_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/logread", Max: 300, Module: []string{"internal/pause", "internal/untrusted"}}.Check(t)
}
