package status_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestClosureStaysLight(t *testing.T) {
	deptest.Closure{
		Package: "status",
		Max:     300,
		House:   []string{"runtime", "internal/restart", "internal/qos", "internal/checkpoint", "internal/runonce"},
	}.Check(t)
}
