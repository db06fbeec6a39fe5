package credentials_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "runtime/cri/credentials",
		Max:     300,
		Module:  []string{"internal/singleflight"},
	}.Check(t)
}
