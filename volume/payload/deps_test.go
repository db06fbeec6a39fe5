package payload_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "internal/runonce", "volume/payload", Max: 300, House: []string{"internal/untrusted", "internal/staticpod", "podenv", "runtime", "volume", "volume/atomic"}}.Check(t)
}
