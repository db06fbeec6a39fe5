package script_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// Package testing is in Run's signature.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "internal/script", Max: 100, Allow: []string{"testing"}}.Check(t)
}
