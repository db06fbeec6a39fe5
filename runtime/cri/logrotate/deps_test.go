package logrotate_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/logrotate", Max: 300, Module: []string{"internal/pause", "internal/runonce", "internal/untrusted", "runtime"}}.Check(t)
}
