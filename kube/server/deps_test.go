package server_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It depends on apimachinery and net/http, and for streams on Kubernetes' packages to
// proxy and serve them, which import client-go's transports; not on clients of the API
// server.
func TestImportsAreFew(t *testing.T) {
	deptest.Closure{
		Package: "kube/server", Max: 400, Module: []string{"internal/gate", "internal/pause", "internal/untrusted", "kube/auth", "kube/internal/podlog", "runtime", "runtime/cri/logread", "runtime/cri/streamserver"}, Allow: []string{"k8s.io/client-go"},
	}.Check(t)
}
