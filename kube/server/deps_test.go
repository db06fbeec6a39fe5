package server_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is apimachinery and net/http, and for streams what Kubernetes has to proxy and to
// serve them, which drags in client-go's transports; no clients of the API server.
func TestImportsAreFew(t *testing.T) {
	deptest.Closure{
		Package: "kube/server", Max: 400, Module: []string{"internal/gate", "internal/pause", "internal/untrusted", "kube/auth", "kube/internal/podlog", "runtime", "runtime/cri/logread", "runtime/cri/streamserver"}, Allow: []string{"k8s.io/client-go"},
	}.Check(t)
}
