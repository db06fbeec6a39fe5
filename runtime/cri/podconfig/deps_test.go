package podconfig_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/podconfig", Max: 400, Module: []string{
		"cm/cgroups", "internal/podspec", "internal/untrusted", "podenv", "runtime", "runtime/cri/plan",
	}}.Check(t)
}
