package serve_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	// 400 and the packages that it shares with kube/server: streamserver, gate and runonce.
	deptest.Closure{Package: "runtime/cri/serve", Max: 403, Module: []string{"runtime", "internal/gate", "internal/runonce", "runtime/cri/streamserver"}}.Check(t)
}
