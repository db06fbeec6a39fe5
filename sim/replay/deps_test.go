package replay_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "sim/replay", Max: 470, AnyModule: true,
		Allow: []string{"testing"}, // of sim/virtualtime
	}.Check(t)
}
