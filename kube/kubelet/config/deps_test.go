package config_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "kube/kubelet/config",
		Max:     415,
		Module:  []string{"cm/state", "internal/checkpoint", "kube/internal/pause", "kube/node", "runtime"},
		Allow:   []string{"k8s.io/client-go"},
	}.Check(t)
}
