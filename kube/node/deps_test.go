package node_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It calls an API server without depending on a client library: the caller supplies
// the client.
func TestImportsStayLight(t *testing.T) {
	deptest.Closure{Package: "kube/node", Max: 350, Module: []string{"cm/state", "internal/checkpoint", "kube/internal/pause", "runtime"}}.Check(t)
}
