package podsource_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "podsource", Max: 300, House: []string{"runtime", "internal/checkpoint", "internal/runonce", "internal/yamljson", "podsource/manifest"}}.Check(t)
}
