package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	// Four of these are golang.org/x/time/rate, which limits pulls, and the types of k8s.io/kubelet's
	// credential provider API: better than copies of them that must follow Kubernetes.
	deptest.Closure{Package: "runtime/cri", Max: 406, Module: []string{
		"allocation", "cm/cgroups", "internal/checkpoint", "internal/podhttp", "internal/podspec", "internal/quiet",
		"internal/singleflight", "internal/untrusted", "podenv", "runtime", "runtime/cri/credentials", "runtime/cri/images", "runtime/cri/plan",
		"runtime/cri/podconfig", "runtime/cri/userns",
	}}.Check(t)
}
