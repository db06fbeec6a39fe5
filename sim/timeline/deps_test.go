package timeline_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "sim/timeline",
		Max:     300,
	}.Check(t)
}
