package certs_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is about client-go's clients, which is what weighs here.
func TestImportsAreClientGo(t *testing.T) {
	deptest.Closure{Package: "kube/certs", Max: 610, Module: []string{"kube/internal/pause"}, Allow: []string{"k8s.io/client-go"}}.Check(t)
}
