package virtualtime_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "sim/virtualtime",
		Max:     90,
		Allow:   []string{"testing"}, // a bubble requires a *testing.T
	}.Check(t)
}
