package imagegc_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "imagegc", Max: 300, Module: []string{"runtime", "internal/checkpoint", "internal/runonce"}}.Check(t)
}
