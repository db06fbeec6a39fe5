package emptydir_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/emptydir", Max: 300, Module: []string{"internal/podspec", "internal/runonce", "internal/untrusted", "internal/usernamespace", "runtime", "volume"}}.Check(t)
}
