package serve_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	// 400 and the package that it shares with kube/server.
	deptest.Closure{Package: "runtime/cri/serve", Max: 402, House: []string{"runtime", "internal/gate", "runtime/cri/streamserver"}}.Check(t)
}
