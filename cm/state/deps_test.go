package state_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

func TestImports(t *testing.T) {
	deptest.Closure{Package: "cm/state", Max: 100, Module: []string{"internal/checkpoint"}}.Check(t)
}
