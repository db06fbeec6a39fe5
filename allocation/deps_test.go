package allocation_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestClosureStaysLight(t *testing.T) {
	deptest.Closure{
		Package: "allocation",
		Max:     300,
		Module:  []string{"internal/checkpoint", "internal/podspec", "runtime"},
	}.Check(t)
}
