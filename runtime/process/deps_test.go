package process_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages bring gRPC; nothing of this house is needed.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/process", Max: 400}.Check(t)
}
