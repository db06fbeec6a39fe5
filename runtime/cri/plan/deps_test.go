package plan_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{
		Package: "runtime/cri/plan",
		Max:     300,
		Module:  []string{"cm/cgroups", "internal/podspec", "runtime"},
	}.Check(t)
}
