package fakecri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages bring gRPC; of this house only the nouns of streams are
// needed. Whoever serves it on a socket is a package of its own.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/fakecri", Max: 400, Module: []string{"runtime"}}.Check(t)
}
