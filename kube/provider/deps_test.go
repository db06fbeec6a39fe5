package provider_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It needs neither client-go nor virtual-kubelet.
func TestImportsAreFew(t *testing.T) {
	deptest.Closure{Package: "kube/provider", Max: 320, Module: []string{
		"agent", "allocation", "internal/checkpoint", "internal/pause", "internal/podhttp", "internal/podspec",
		"internal/runonce", "internal/staticuid", "internal/untrusted", "internal/yamljson", "kube/internal/podlog", "pleg", "podenv", "podsource",
		"podsource/manifest", "podworker", "prober", "runtime", "runtime/cri/logread", "status",
	}}.Check(t)
}
