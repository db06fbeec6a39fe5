package hollow_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// BenchmarkMetrics is a request for the resource metrics of a node with 30 pods, over a TCP
// connection that remains open.
func BenchmarkMetrics(b *testing.B) {
	pods := map[string]string{}
	for i := range 30 {
		pods[fmt.Sprint("web-", i)] = "cpu=250m,memory=64Mi"
	}
	s := serve(b, auth.Anonymous{}, pods)
	defer s.stop()
	s.get(0, "/metrics/resource")
	b.ReportAllocs()
	for b.Loop() {
		if code, _ := s.get(0, "/metrics/resource"); code != http.StatusOK {
			b.Fatal(code)
		}
	}
}

// BenchmarkHealthz is the cost of a request without content: that of the server of a node.
func BenchmarkHealthz(b *testing.B) {
	s := serve(b, auth.Anonymous{}, nil)
	defer s.stop()
	b.ReportAllocs()
	for b.Loop() {
		if code, _ := s.get(0, "/healthz"); code != http.StatusOK {
			b.Fatal(code)
		}
	}
}
