package serve_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	// The limit is 400 plus the packages that are shared with kube/server: streamserver, gate and
	// runonce.
	deptest.Closure{Package: "runtime/cri/serve", Max: 403, House: []string{"runtime", "internal/gate", "internal/runonce", "runtime/cri/streamserver"}}.Check(t)
}
