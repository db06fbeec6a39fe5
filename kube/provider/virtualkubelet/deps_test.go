package virtualkubelet_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// nodeutil imports the libraries of the API server. This package is a module of its own, so
// that no other module depends on them.
func TestImportsAreThoseOfVirtualKubelet(t *testing.T) {
	deptest.Closure{
		Package: "kube/provider/virtualkubelet", Max: 1450, AnyModule: true,
		Allow: []string{"k8s.io/client-go"},
	}.Check(t)
}
