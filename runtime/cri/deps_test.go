package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri", Max: 406, House: []string{
		"allocation", "cm/cgroups", "runtime", "runtime/cri/credentials", "runtime/cri/images", "runtime/cri/plan", "runtime/cri/podconfig", "runtime/cri/userns",
		"internal/checkpoint", "internal/hugepages", "internal/podhttp", "internal/podspec", "podenv", "internal/qos", "internal/quiet", "internal/restart", "internal/singleflight", "internal/untrusted",
	}}.Check(t)
}
