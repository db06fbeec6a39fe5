package apitest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is for tests of packages that depend on client-go already. The apply configurations,
// whose schemas server-side apply needs, are 29 packages of client-go.
func TestDependenciesOfTheServer(t *testing.T) {
	deptest.Closure{
		Package: "kube/apitest", Max: 540, Allow: []string{"k8s.io/client-go"},
		Module: []string{"internal/podspec", "internal/staticuid", "internal/yamljson", "podsource/manifest", "runtime"},
	}.Check(t)
}
