package prober_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "prober", Max: 300, Module: []string{"internal/checkpoint", "internal/podspec", "internal/podhttp", "internal/runonce", "internal/untrusted", "podenv", "runtime"}}.Check(t)
}
