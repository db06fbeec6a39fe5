package images_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/images", Max: 400, Module: []string{"internal/checkpoint", "internal/quiet", "internal/singleflight"}}.Check(t)
}
