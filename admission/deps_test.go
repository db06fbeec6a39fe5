package admission_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "admission", Max: 300, Module: []string{"allocation", "internal/checkpoint", "internal/podfields", "internal/podspec", "runtime"}}.Check(t)
}
