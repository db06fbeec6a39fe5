package secret_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/secret", Max: 300, Module: []string{
		"internal/podspec", "internal/runonce", "internal/untrusted", "internal/usernamespace", "podenv", "runtime", "volume", "volume/atomic", "volume/emptydir",
		"volume/internal/fileplugin", "volume/payload",
	}}.Check(t)
}
