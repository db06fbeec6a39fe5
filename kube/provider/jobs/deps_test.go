package jobs_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It needs neither client-go nor virtual-kubelet.
func TestImportsAreFew(t *testing.T) {
	deptest.Closure{Package: "kube/provider/jobs", Max: 290, Module: []string{
		"cm/cgroups", "internal/podspec", "runtime", "runtime/cri/plan",
	}}.Check(t)
}
