package volumetest_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{
		Package: "volume/volumetest", Max: 330, Module: []string{"internal/podspec", "internal/runonce", "internal/untrusted", "runtime", "volume"},
		Allow: []string{"testing", "github.com/stretchr/testify"}, // it is for tests
	}.Check(t)
}
