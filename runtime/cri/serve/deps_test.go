package serve_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/serve", Max: 400, House: []string{"runtime"}}.Check(t)
}
