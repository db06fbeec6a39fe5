package process_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages import gRPC; of this repository only the types of streams and
// the directory lock are needed.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/process", Max: 400, Module: []string{"internal/dirlock", "runtime"}}.Check(t)
}
