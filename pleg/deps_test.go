package pleg_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "pleg", Max: 300, Module: []string{"internal/runonce", "runtime"}}.Check(t)
}
