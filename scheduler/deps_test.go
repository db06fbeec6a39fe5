package scheduler_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "scheduler", Max: 300, Module: []string{"internal/podspec", "runtime"}}.Check(t)
}
