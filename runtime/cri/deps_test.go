package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri", Max: 400, House: []string{
		"allocation", "runtime", "runtime/cri/plan", "runtime/cri/podconfig", "internal/restart", "internal/qos", "internal/checkpoint",
		"internal/podenv", "internal/quiet", "internal/staticpod",
	}}.Check(t)
}
