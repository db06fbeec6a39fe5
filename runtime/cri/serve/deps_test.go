package serve_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	// 400 and the packages that it shares with others: streamserver, gate, runonce, unixgrpc and x/time/rate.
	deptest.Closure{Package: "runtime/cri/serve", Max: 405, Module: []string{"runtime", "internal/gate", "internal/runonce", "internal/unixgrpc", "runtime/cri/streamserver"}}.Check(t)
}
