package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/server"
)

// The cost of authentication and authorization, compared with the response alone: that
// of a node with 110 pods.
func BenchmarkPods(b *testing.B) {
	var list pods
	for range 110 {
		list = append(list, web.DeepCopy())
	}
	s := newServer(b, func(c *server.Config) {
		c.Authenticator, c.Authorizer, c.Pods = named{}, may{"reader": {"get nodes/proxy"}}, list
	})
	for name, h := range map[string]http.Handler{"authorised": s, "read-only": s.ReadOnly()} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/pods", nil)
			r.Header.Set("User", "reader")
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// The node's cost of a rejected request.
func BenchmarkRefusal(b *testing.B) {
	s := newServer(b, func(c *server.Config) { c.Authenticator, c.Pods = named{}, pods([]*v1.Pod{web}) })
	r := httptest.NewRequest("GET", "/exec/ns/web/nginx?command=id", nil)
	b.ReportAllocs()
	for b.Loop() {
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
}
