package record_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "sim/record", Max: 430, AnyModule: true}.Check(t)
}
