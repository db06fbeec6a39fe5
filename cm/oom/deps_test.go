package oom_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/oom", Max: 300, Module: []string{"internal/runonce", "runtime"}}.Check(t)
}
