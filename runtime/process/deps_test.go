package process_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages bring gRPC; of this house only the nouns of streams are
// needed.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/process", Max: 400, House: []string{"runtime"}}.Check(t)
}
