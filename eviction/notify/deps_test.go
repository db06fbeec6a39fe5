package notify_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "eviction/notify", Max: 120, Module: []string{"internal/runonce"}}.Check(t)
}
