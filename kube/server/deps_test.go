package server_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// It is apimachinery and net/http; the API server is asked by those who made the
// authenticators.
func TestImportsAreFew(t *testing.T) {
	deptest.Closure{Package: "kube/server", Max: 400, House: []string{"kube/auth", "runtime"}}.Check(t)
}
