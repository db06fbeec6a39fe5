package runtimetest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// The signature of the suite requires package testing.
func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "runtime/runtimetest",
		Max:     300,
		Module:  []string{"cm/cgroups", "internal/pause", "internal/podspec", "runtime", "runtime/cri/plan"},
		Allow:   []string{"testing"},
	}.Check(t)
}
