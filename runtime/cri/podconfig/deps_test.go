package podconfig_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/podconfig", Max: 400, House: []string{
		"runtime", "runtime/cri/plan", "internal/restart", "internal/qos", "podenv", "internal/untrusted",
	}}.Check(t)
}
