package certs_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// Nearly all of its dependencies are client-go's clients.
func TestImportsAreClientGo(t *testing.T) {
	deptest.Closure{Package: "kube/certs", Max: 610, Module: []string{"kube/internal/pause"}, Allow: []string{"k8s.io/client-go"}}.Check(t)
}
