package objectdir_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume/objectdir", Max: 300, House: []string{"runtime", "volume", "internal/yamljson"}}.Check(t)
}
