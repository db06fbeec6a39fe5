package fakecri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages import gRPC; of this repository only the types of streams are
// needed. Serving on a socket is a package of its own.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/fakecri", Max: 400, Module: []string{"runtime"}}.Check(t)
}
