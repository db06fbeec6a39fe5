package claim_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "agent/claim", Max: 120,
		Module: []string{"internal/dirlock", "internal/untrusted", "internal/yamljson"},
	}.Check(t)
}
