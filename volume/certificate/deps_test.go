package certificate_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/certificate", Max: 300, Module: []string{
		"internal/podspec", "internal/runonce", "internal/untrusted", "runtime", "volume",
	}}.Check(t)
}
