package page_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It knows nothing of pods but what it is told: the standard library is all it needs.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "agent/statuspage/internal/page", Max: 200}.Check(t)
}
