package page_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It has no dependency on pod packages: the standard library is sufficient.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "agent/statuspage/internal/page", Max: 200}.Check(t)
}
