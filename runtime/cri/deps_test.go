package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri", Max: 400, House: []string{
		"runtime", "runtime/cri/plan", "runtime/cri/podconfig", "runtime/cri/userns", "internal/restart", "internal/qos", "internal/podenv", "internal/quiet", "internal/staticpod",
	}}.Check(t)
}
