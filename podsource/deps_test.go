package podsource_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "podsource", Max: 300, Module: []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "internal/staticuid", "internal/yamljson", "podsource/manifest", "runtime"}}.Check(t)
}
