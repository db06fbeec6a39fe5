package streaming_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/streaming", Max: 300, Module: []string{"runtime"}}.Check(t)
}
