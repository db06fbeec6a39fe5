package grpcprobe_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "prober/grpcprobe", Max: 400, Module: []string{"internal/checkpoint", "internal/podspec", "internal/podhttp", "internal/runonce", "internal/untrusted", "podenv", "prober", "runtime"}}.Check(t)
}
