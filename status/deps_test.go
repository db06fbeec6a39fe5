package status_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestClosureStaysLight(t *testing.T) {
	deptest.Closure{
		Package: "status",
		Max:     300,
		Module:  []string{"internal/checkpoint", "internal/podspec", "internal/runonce", "runtime"},
	}.Check(t)
}
