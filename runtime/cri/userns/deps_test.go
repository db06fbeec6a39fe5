package userns_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "runtime/cri/userns", Max: 300, Module: []string{"internal/checkpoint"}}.Check(t)
}
