package controllers_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// Most of it is what the pod garbage collector imports for one function of the kubelet, and
// kube-scheduler.
func TestDependenciesOfControllers(t *testing.T) {
	deptest.Closure{
		Package: "kube/controllers",
		Max:     1650,
		Allow:   []string{"k8s.io/client-go", "k8s.io/kubernetes", "testing"},
	}.Check(t)
}
