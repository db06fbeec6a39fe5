package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri", Max: 410, Module: []string{
		"allocation", "cm/cgroups", "internal/checkpoint", "internal/hugepages", "internal/podhttp", "internal/podspec", "internal/qos", "internal/quiet",
		"internal/restart", "internal/singleflight", "internal/untrusted", "podenv", "runtime", "runtime/cri/credentials", "runtime/cri/images", "runtime/cri/plan",
		"runtime/cri/podconfig", "runtime/cri/userns",
	}}.Check(t)
}
