package apitest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is for tests of packages that depend on client-go already.
func TestDependenciesOfTheServer(t *testing.T) {
	deptest.Closure{Package: "kube/client/apitest", Max: 480, Allow: []string{"k8s.io/client-go"}}.Check(t)
}
