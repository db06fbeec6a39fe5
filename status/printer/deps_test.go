package printer_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "status/printer", Max: 300,
		Module: []string{
			"internal/checkpoint", "internal/podspec", "internal/runonce", "internal/terminal", "runtime", "status",
		},
	}.Check(t)
}
