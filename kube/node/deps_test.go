package node_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It speaks to an API server, and takes no client along: who has one brings it.
func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "kube/node", Max: 350, Module: []string{"cm/state", "internal/checkpoint", "kube/internal/pause", "runtime"}}.Check(t)
}
