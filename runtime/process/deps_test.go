package process_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages bring gRPC; of this house only the nouns of streams are
// needed, and who has a directory for its own.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/process", Max: 400, Module: []string{"internal/dirlock", "runtime"}}.Check(t)
}
