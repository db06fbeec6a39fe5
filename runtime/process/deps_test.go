package process_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The CRI's messages import gRPC; of this repository only the types of streams,
// the directory lock and the detection of user namespaces are needed.
func TestDependencies(t *testing.T) {
	deptest.Closure{Package: "runtime/process", Max: 400, Module: []string{"internal/dirlock", "internal/usernamespace", "runtime"}}.Check(t)
}
