package podsapi_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "agent/podsapi", Max: 400, Module: []string{"internal/runonce", "internal/unixgrpc"}}.Check(t)
}
