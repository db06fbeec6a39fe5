package dratest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/dra/dratest", Max: 400}.Check(t)
}
